// Slices of load by dnsperf, in turns over several servers.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { median, medianRatio } from '../figures.ts'
import type { Bench } from '../group.ts'
import type { Server } from './servers.ts'

const execute = promisify(execFile)

/** Answers a second, and the server's own processor time for one of them. */
export type Slice = { perSecond: number; cpuUs: number }
/** With `dnssecOk`, signatures are asked for. */
export type Target = { server: Server; mixFile: string; dnssecOk?: boolean }

// Enough sockets that servers with one per processor get their share on each; enough in flight that nobody waits, but not
// so many that a server's receive buffer loses some on a busy machine: it holds 256 small packets by default, of which
// Linux still counts up to a quarter that were read already. dnsperf waits ten seconds for every loss.
const clients = 16
const threads = 2
const inFlight = 128
const maxLost = 0.001

/** Throws if answers were lost, or were errors: then the figure is not of answers. At most `perSecond` are asked. */
export async function load(program: string, target: Target, limit: ['-l' | '-n', number], perSecond?: number) {
  const { server, mixFile, dnssecOk = false } = target
  const args = ['-s', '127.0.0.1', '-p', String(server.ports[0]), '-d', mixFile, '-e', '-c', String(clients)]
  args.push('-T', String(threads), '-q', String(inFlight), '-t', '10', limit[0], String(limit[1]))
  if (perSecond !== undefined) args.push('-Q', String(perSecond))
  if (dnssecOk) args.push('-D')
  const beforeMs = await server.cpuMs()
  const { stdout } = await execute(program, args)
  const usedMs = (await server.cpuMs()) - beforeMs
  const figure = (label: RegExp) => Number(label.exec(stdout)?.[1])
  const sent = figure(/Queries sent:\s+(\d+)/)
  const completed = figure(/Queries completed:\s+(\d+)/)
  const answersPerSecond = figure(/Queries per second:\s+([\d.]+)/)
  const wrong = /REFUSED|SERVFAIL|FORMERR|NOTIMP/.test(stdout)
  if (!(answersPerSecond > 0) || wrong || sent - completed > sent * maxLost) {
    throw new Error(`${server.name} under load:\n${stdout}`)
  }
  return { perSecond: answersPerSecond, cpuUs: (usedMs * 1000) / completed } satisfies Slice
}

/** For each target its slices, round by round. */
export async function loadInTurns(
  bench: Pick<Bench, 'size' | 'rounds' | 'seconds'>,
  program: string,
  targets: Target[],
  what: string,
) {
  const [rounds, seconds] = [bench.rounds(4), bench.size(bench.seconds(4), 0.25)]
  const slices: Slice[][] = targets.map(() => [])
  for (const target of targets) await load(program, target, ['-l', bench.size(1, 0.1)])
  for (let round = 0; round < rounds; round++) {
    console.error(`${what}, round ${round + 1} of ${rounds} …`)
    // There and back again, so that a machine that gets slower or faster favours nobody.
    for (const index of round % 2 === 0 ? targets.keys() : [...targets.keys()].reverse()) {
      slices[index]!.push(await load(program, targets[index]!, ['-l', seconds]))
    }
  }
  return slices
}

export const middle = (slices: Slice[], figure: keyof Slice) => median(slices.map((slice) => slice[figure]))

/** The median of ratios of slices that ran side by side. */
export function ratio(above: Slice[], below: Slice[]): number {
  const [one, other] = [above, below].map((slices) => slices.map(({ perSecond }) => perSecond))
  return medianRatio(one!, other!)
}
