// One webhook whose receiver responds at once: deliveries per second, their order, and the delay when its worker is killed.
import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '../../src/platform/ids.ts'
import type { Child } from '../children.ts'
import { median, verdict } from '../figures.ts'
import type { Received } from './receivers.ts'
import type { EventsBench } from './rows.ts'
import { type Seeded, sweep } from './seed.ts'

// The number of parallel requests, which may overtake each other on the wire.
const window = 64
const giveUpMs = 60_000

type Worker = { start(): Promise<Child>; receivers: Child }

/** Commits the events together, so that all of them wait; returns their IDs in log order. */
async function write({ client }: Seeded, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId('evt'))
  await client.query(
    `INSERT INTO event (id, account_id, type, actor, subject, data, created_at)
     SELECT e.id, w.account_id, 'ticket.created', 'system', 'tkt_bench', '{"subject":"Where is my certificate?"}', now()
     FROM (SELECT account_id FROM webhook WHERE active) w, unnest($1::text[]) WITH ORDINALITY e(id, n) ORDER BY n`,
    [ids],
  )
  return ids
}

/** Waits until this many events have arrived; returns the seconds it took. */
async function arrive(receivers: Child, count: number): Promise<number> {
  const startMs = performance.now()
  while ((await receivers.ask<number>('count')) < count && performance.now() - startMs < giveUpMs) await sleep(5)
  return (performance.now() - startMs) / 1000
}

export async function measureSingle(bench: EventsBench, { start, receivers }: Worker, seeded: Seeded): Promise<void> {
  const events = bench.size(10_000, 1_500)
  console.error(`${events} events for one webhook …`)
  const { client } = seeded
  await client.query('UPDATE webhook SET active = id = (SELECT min(id) FROM webhook)')
  const worker = await start()
  const rates: number[] = []
  let apart = 0
  for (let round = 0; round < bench.rounds(3); round++) {
    await receivers.ask<Received>('received')
    const ids = await write(seeded, events)
    rates.push(events / (await arrive(receivers, events)))
    const place = new Map(ids.map((id, index) => [id, index]))
    const order = await receivers.ask<string[]>('order')
    apart = Math.max(apart, ...order.map((id, index) => Math.abs(place.get(id)! - index)))
  }
  await receivers.ask<Received>('received')
  // The other worker is already running, as with several machines.
  const workers = [worker, await start()]
  await write(seeded, events)
  await arrive(receivers, events / 5)
  const { rows } = await client.query(`SELECT leased_by FROM webhook_lane WHERE leased_by IS NOT NULL`)
  const killed = workers.find(({ pid }) => rows.some(({ leased_by }) => leased_by.includes(`-${pid}-`)))
  if (!killed) throw new Error('No worker holds the webhook: its deliveries were over before one could be killed.')
  process.kill(killed.pid, 'SIGKILL')
  const killedMs = performance.now()
  const before = await receivers.ask<number>('count')
  await arrive(receivers, before + 1)
  const takeoverSeconds = (performance.now() - killedMs) / 1000
  await arrive(receivers, events)
  const { events: arrived, requests } = await receivers.ask<Received>('received')
  await workers.find((one) => one !== killed)!.stop()
  await sweep(client)

  const rate = median(rates)
  bench.record('single', rate.toFixed(0))
  bench.record('takeover', `${takeoverSeconds.toFixed(1)} s`)
  console.log(
    `one receiver: ${rates.map((one) => one.toFixed(0)).join(', ')} deliveries/s; ${requests - events} repeats after kill -9`,
  )
  console.log(verdict(rate >= 1000, 'one receiver gets ≥ 1,000 deliveries/s', rate.toFixed(0)))
  console.log(
    verdict(apart < window, `none arrives more than ${window} places off the order of the log`, String(apart)),
  )
  console.log(
    verdict(takeoverSeconds < 10, 'a killed worker is replaced within 10 s', `${takeoverSeconds.toFixed(1)} s`),
  )
  console.log(verdict(arrived === events, 'nothing is lost by that', `${events - arrived} are missing`))
}
