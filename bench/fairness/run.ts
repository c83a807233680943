// `npm run bench -- fairness`: an honest tenant's API, edge and DNS, quiet and while a hostile one does its worst.
// Quiet slices take turns with hostile ones. Platform, PostgreSQL and both tenants are processes of their own on one machine.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Child, startChild } from '../children.ts'
import { quantile, table, verdict } from '../figures.ts'
import { inScratch } from '../scratch.ts'
import { acts, type Tally } from './acts.ts'
import type { Honest, Latencies } from './honest.ts'
import { startWorld, type World } from './world.ts'

const wantedRatio = 2
// An act is under way before it is measured.
const leadMs = 1_000
const file = (name: string) => join(import.meta.dirname, name)

type Measured = { act: string; quiet: Latencies; hostile: Latencies; tally: Tally }

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string', default: '' },
      rounds: { type: 'string', default: '2' },
      seconds: { type: 'string', default: '10' },
      rate: { type: 'string', default: '50' },
      records: { type: 'string', default: '20000' },
    },
  })
  await inScratch(async ({ directory, postgres, atEnd }) => {
    const world = await startWorld(postgres, directory, Number(values.records))
    atEnd(() => world.server.stop())
    const tenants = {
      honest: await startChild(file('honest.ts'), {}),
      hostile: await startChild(file('hostile.ts'), {}),
    }
    atEnd(() => Promise.all([tenants.honest.stop(), tenants.hostile.stop()]))
    const pace = { seconds: Number(values.seconds), perSecond: Number(values.rate) }
    const ask = { ...world.honest, ...pace }
    await tenants.honest.ask<Latencies>({ ...ask, seconds: 3 })
    const measured: Measured[] = []
    for (const { name } of acts.filter(({ name }) => name.includes(values.only))) {
      measured.push(await measure(tenants, world, ask, { act: name, rounds: Number(values.rounds) }))
    }
    report(measured)
  })
}

type Tenants = { honest: Child; hostile: Child }

async function measure(
  { honest, hostile }: Tenants,
  world: World,
  ask: Honest,
  { act, rounds }: { act: string; rounds: number },
): Promise<Measured> {
  const measured: Measured = { act, quiet: {}, hostile: {}, tally: {} }
  for (let round = 0; round < rounds; round++) {
    console.error(`${act}, round ${round + 1} of ${rounds} …`)
    add(measured.quiet, await honest.ask<Latencies>(ask))
    await hostile.ask({ begin: act, hostile: world.hostile })
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

function report(measured: Measured[]): void {
  const rows = [['', 'quiet p50', 'p99', 'hostile p50', 'p99', 'ratio of p99']]
  const worst = new Map<string, number>()
  for (const { act, quiet, hostile, tally } of measured) {
    const done = Object.entries(tally).map(([status, count]) => `${count} × ${status}`)
    rows.push([`${act} (${done.join(', ') || 'none ended'})`, '', '', '', '', ''])
    for (const [name, calm] of Object.entries(quiet)) {
      const pressed = hostile[name]!
      const ratio = quantile(pressed, 0.99) / quantile(calm, 0.99)
      const figures = [calm, pressed].flatMap((values) => [quantile(values, 0.5), quantile(values, 0.99)])
      rows.push([`  ${name}`, ...figures.map((ms) => `${ms.toFixed(1)} ms`), ratio.toFixed(2)])
      worst.set(act, Math.max(worst.get(act) ?? 0, ratio))
    }
  }
  console.log(`${table(rows)}\n`)
  for (const [act, ratio] of worst) {
    console.log(
      verdict(ratio <= wantedRatio, `p99 at most ${wantedRatio} times the quiet one, ${act}`, ratio.toFixed(2)),
    )
  }
}
