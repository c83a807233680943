// The table of a cluster that was killed node by node, and whether it holds.
import { table } from '../../bench/figures.ts'
import { healMs, type Report, seconds } from './cluster.ts'

const maxTold = 20
const isLate = (took: number | string) => typeof took === 'string' || took > healMs

export function faultsOf({ healings, lost, repeated, unfinished, visits, internalErrors, refused }: Report): string[] {
  const late = healings.flatMap((one) => [
    ...(isLate(one.without) ? [`${one.node}: not whole without it: ${seconds(one.without)}`] : []),
    ...(isLate(one.with) ? [`${one.node}: not whole with it again: ${seconds(one.with)}`] : []),
  ])
  const failed = Object.entries(visits).flatMap(([name, { faults }]) => faults.map((fault) => `${name}: ${fault}`))
  return [
    ...late,
    ...lost.map((one) => `lost: ${one}`),
    ...repeated.map((one) => `repeated: ${one}`),
    ...unfinished.map((one) => `unfinished: ${one}`),
    ...failed.map((one) => `failed at every machine: ${one}`),
    ...internalErrors.map((one) => `answer 500: ${one}`),
    ...refused.map((one) => `refused: ${one}`),
  ]
}

export function render(report: Report): string {
  const { healings, acknowledged, lost, repeated, unfinished, visits } = report
  const faults = faultsOf(report)
  return [
    table([
      ['node', 'ended by', 'whole without it', 'whole with it again'],
      ...healings.map(({ node, how, without, with: back }) => [
        node,
        how === 'kill' ? 'kill -9' : 'loss of the machine',
        seconds(without),
        seconds(back),
      ]),
    ]),
    '',
    table([
      ['asked all the while', 'requests', 'failed at every machine'],
      ...Object.entries(visits).map(([name, { asked, failed }]) => [name, String(asked), String(failed)]),
    ]),
    '',
    `acknowledged writes: ${acknowledged}; lost: ${lost.length}; repeated: ${repeated.length}; unfinished: ${unfinished.length}`,
    ...faults.slice(0, maxTold),
    ...(faults.length > maxTold ? [`… and ${faults.length - maxTold} more`] : []),
  ].join('\n')
}
