// `npm run bench -- fairness`: an honest tenant's API, edge and DNS, alone and during the attacks of a hostile one.
// Quiet and hostile slices alternate. Platform, PostgreSQL and both tenants are separate processes on one machine.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Child, startChild } from '../children.ts'
import { quantile, table, verdict } from '../figures.ts'
import type { Bench, Figure } from '../group.ts'
import { attacks, type Tally } from './attacks.ts'
import type { Honest, Latencies } from './honest.ts'
import { startWorld, type World } from './world.ts'

const maxRatio = 2
const file = (name: string) => join(import.meta.dirname, name)

type Measured = { attack: string; quiet: Latencies; hostile: Latencies; tally: Tally }

const figures: Record<string, Figure> = Object.fromEntries(
  attacks.map(({ name }) => [
    name,
    { what: `p99 beside a hostile tenant's ${name}, the worst of API, edge and DNS`, against: 'quiet' },
  ]),
)

export const group = { about: "An honest tenant's requests while a hostile one does its worst", figures, run }

async function run(bench: Bench): Promise<void> {
  const { directory, atEnd, only } = bench
  const postgres = await bench.startPostgres()
  const world = await startWorld(postgres, directory, bench.size(20_000, 200))
  atEnd(() => world.server.stop())
  const tenants = {
    honest: await startChild(file('honest.ts'), {}),
    hostile: await startChild(file('hostile.ts'), {}),
  }
  atEnd(() => Promise.all([tenants.honest.stop(), tenants.hostile.stop()]))
  const pace = { seconds: bench.size(bench.seconds(10), 0.5), perSecond: 50 }
  const ask = { ...world.honest, ...pace }
  await tenants.honest.ask<Latencies>({ ...ask, seconds: bench.size(3, 0.1) })
  const measured: Measured[] = []
  for (const { name } of attacks.filter(({ name }) => name.includes(only))) {
    measured.push(
      await measure(tenants, world, ask, { attack: name, rounds: bench.rounds(2), leadMs: bench.size(1_000, 100) }),
    )
  }
  report(bench, measured)
}

type Tenants = { honest: Child; hostile: Child }

async function measure(
  { honest, hostile }: Tenants,
  world: World,
  ask: Honest,
  // An attack runs for a while before it is measured.
  { attack, rounds, leadMs }: { attack: string; rounds: number; leadMs: number },
): Promise<Measured> {
  const measured: Measured = { attack, quiet: {}, hostile: {}, tally: {} }
  for (let round = 0; round < rounds; round++) {
    console.error(`${attack}, round ${round + 1} of ${rounds} …`)
    add(measured.quiet, await honest.ask<Latencies>(ask))
    await hostile.ask({ begin: attack, hostile: world.hostile })
    await sleep(leadMs)
    add(measured.hostile, await honest.ask<Latencies>(ask))
    const tally = await hostile.ask<Tally>({ stop: true })
    for (const [status, count] of Object.entries(tally)) measured.tally[status] = (measured.tally[status] ?? 0) + count
    await sleep(leadMs)
  }
  return measured
}

function add(all: Latencies, more: Latencies): void {
  for (const [name, values] of Object.entries(more)) all[name] = [...(all[name] ?? []), ...values]
}

function report(bench: Bench, measured: Measured[]): void {
  const rows = [['', 'quiet p50', 'p99', 'hostile p50', 'p99', 'ratio of p99']]
  const worst = new Map<string, number>()
  for (const { attack, quiet, hostile, tally } of measured) {
    const done = Object.entries(tally).map(([status, count]) => `${count} × ${status}`)
    rows.push([`${attack} (${done.join(', ') || 'none ended'})`, '', '', '', '', ''])
    for (const [name, calm] of Object.entries(quiet)) {
      const pressed = hostile[name]!
      const ratio = quantile(pressed, 0.99) / quantile(calm, 0.99)
      const figures = [calm, pressed].flatMap((values) => [quantile(values, 0.5), quantile(values, 0.99)])
      rows.push([`  ${name}`, ...figures.map((ms) => `${ms.toFixed(1)} ms`), ratio.toFixed(2)])
      worst.set(attack, Math.max(worst.get(attack) ?? 0, ratio))
    }
  }
  console.log(`${table(rows)}\n`)
  for (const [attack, ratio] of worst) {
    bench.record(attack, ratio)
    console.log(verdict(ratio <= maxRatio, `p99 at most ${maxRatio} times the quiet one, ${attack}`, ratio.toFixed(2)))
  }
}
