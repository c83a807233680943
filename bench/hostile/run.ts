// `npm run bench -- hostile`: the cost of hostile bytes for the platform, compared with the same bytes in plain form, and
// their effect on a neighbour. `--only 'a server'` runs the surfaces whose name contains this.

import { join } from 'node:path'
import { type Child, startChild, type Usage } from '../children.ts'
import type { Latencies } from '../fairness/honest.ts'
import { quantile, table, verdict } from '../figures.ts'
import type { Bench, Figure } from '../group.ts'
import type { Order, Result } from './sender.ts'
import { surfaces } from './shapes.ts'
import type { Surface, Target } from './surface.ts'
import { startWorld, type World } from './world.ts'

const maxOfPlain = 10
const maxOfQuiet = 2
const everyMs = 250
const messageBytes = 1 << 20

const figures: Record<string, Figure> = Object.fromEntries(
  Object.keys(surfaces).map((name) => [
    name,
    {
      what: `Hostile ${name}: processor time, and a neighbour's p99`,
      against: 'the same bytes in plain form, and quiet',
    },
  ]),
)

export const group = { about: 'Hostile bytes in every form, and what a neighbour notices of them', figures, run }

type Row = { shape: string; cpuMs: number; times: number; neighbour: number; worst: string; ends: string }

async function run(bench: Bench): Promise<void> {
  const world = await startWorld(await bench.startPostgres(), bench.directory)
  bench.atEnd(() => world.server.stop())
  const sender = await startChild(join(import.meta.dirname, 'sender.ts'), {})
  bench.atEnd(() => sender.stop())
  const neighbour = await startChild(join(import.meta.dirname, '../fairness/honest.ts'), {})
  bench.atEnd(() => neighbour.stop())
  const target: Target = { ...world.target, bytes: bench.size(messageBytes, 32 << 10) }
  const all = { bench, world, sender, neighbour, target }
  // The first requests compile the code.
  await visit(all, 1)
  for (const [name, surface] of Object.entries(surfaces).filter(([name]) => name.includes(bench.only))) {
    report(bench, name, await measure(all, name, surface))
  }
}

type All = { bench: Bench; world: World; sender: Child; neighbour: Child; target: Target }

const visit = ({ world, neighbour }: All, seconds: number) =>
  neighbour.ask<Latencies>({ ...world.honest, seconds, perSecond: 50 })

async function measure(all: All, name: string, { shapes }: Surface): Promise<Row[]> {
  const { bench } = all
  const seconds = bench.size(bench.seconds(5), 0.1)
  await cost(all, name, null)
  const quiet = await visit(all, 2 * seconds)
  const plain = await cost(all, name, null)
  const rows: Row[] = [{ shape: 'plain', cpuMs: plain.cpuMs, times: 1, neighbour: 1, worst: '', ends: plain.ends }]
  for (const shape of Object.keys(shapes)) {
    console.error(`${name}: ${shape} …`)
    const { cpuMs, ends } = await cost(all, name, shape)
    const [pressed] = await Promise.all([visit(all, seconds), send(all, name, shape, seconds, everyMs)])
    const ratios = Object.entries(quiet).map(([what, calm]) => {
      return { what, ratio: quantile(pressed[what]!, 0.99) / quantile(calm, 0.99) }
    })
    const { what, ratio } = ratios.toSorted((a, b) => b.ratio - a.ratio)[0]!
    rows.push({ shape, cpuMs, times: cpuMs / plain.cpuMs, neighbour: ratio, worst: what, ends })
  }
  return rows
}

function send({ sender, target }: All, surface: string, shape: string | null, seconds: number, everyMs: number | null) {
  return sender.ask<Result>({ surface, shape, target, seconds, everyMs } satisfies Order)
}

/** The platform's CPU time per message, without its idle use. */
async function cost(all: All, surface: string, shape: string | null): Promise<{ cpuMs: number; ends: string }> {
  const { world, bench } = all
  const before = await world.server.ask<Usage>('usage')
  const { messages, ends } = await send(all, surface, shape, bench.smoke ? 0 : bench.seconds(2), null)
  const after = await world.server.ask<Usage>('usage')
  const cpuMs = (after.cpuMs - before.cpuMs) / messages
  return { cpuMs, ends: Object.keys(ends).join(' ') }
}

function report(bench: Bench, name: string, rows: Row[]): void {
  const cells = rows.map(({ shape, cpuMs, times, neighbour, worst, ends }) => {
    const beside = worst === '' ? '' : `${neighbour.toFixed(1)} (${worst})`
    return [shape, cpuMs.toFixed(2), times.toFixed(1), beside, ends]
  })
  console.log(`\n${table([[name, 'ms of CPU', 'times plain', "neighbour's p99", 'ended'], ...cells])}\n`)
  const costliest = Math.max(...rows.map(({ times }) => times))
  const worst = Math.max(...rows.map(({ neighbour }) => neighbour))
  bench.record(name, `${costliest.toFixed(1)} and ${worst.toFixed(1)}`)
  console.log(verdict(costliest <= maxOfPlain, `at most ${maxOfPlain} times the plain form`, costliest.toFixed(1)))
  console.log(verdict(worst <= maxOfQuiet, `a neighbour's p99 at most ${maxOfQuiet} times quiet`, worst.toFixed(1)))
}
