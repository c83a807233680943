// What open event streams cost: memory of the API, and queries while nothing happens and when something does.
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Child, Usage } from '../children.ts'
import { verdict } from '../figures.ts'
import type { Seeded } from './seed.ts'
import type { Written } from './writer.ts'

const idleSeconds = 30
// PostgreSQL's processes report what they did after ten seconds without work at the latest.
const statisticsMs = 11_000

type Processes = { api: Child; readers: Child; writer: Child }

export async function measureStreams(
  { api, readers, writer }: Processes,
  { client, tokens }: Seeded,
  { url, port, streams }: { url: string; port: number; streams: number },
): Promise<void> {
  console.error(`${streams} event streams …`)
  await client.query('UPDATE webhook SET active = false')
  const before = await api.ask<Usage>('memory')
  await readers.ask({ open: streams, port, tokens })
  await sleep(statisticsMs)
  const residentMb = ((await api.ask<Usage>('memory')).residentBytes - before.residentBytes) / 2 ** 20
  const idle = await countTransactions(client, () => sleep(idleSeconds * 1000))
  const events = 100
  const busy = await countTransactions(client, () =>
    writer.ask<Written>({ url, tokens: tokens.slice(0, 1), perSecond: events / 5, seconds: 5 }),
  )
  const received = await readers.ask<number>('events')
  await readers.ask('close')
  console.log(
    `${streams} open event streams: ${residentMb.toFixed(0)} MB; ${(idle / idleSeconds).toFixed(2)} transactions/s in the ` +
      `whole database while nothing happens; ${busy} for about ${events} written events, ${received} of which were sent`,
  )
  console.log(verdict(residentMb < 200, `${streams} streams cost < 200 MB`, `${residentMb.toFixed(0)} MB`))
  const perStream = idle / idleSeconds / streams
  console.log(verdict(perStream < 0.005, 'no polling query per stream', `${perStream.toFixed(4)}/s for each`))
}

async function countTransactions(client: pg.Client, work: () => Promise<unknown>): Promise<number> {
  const read = async () => {
    await sleep(statisticsMs)
    const sql = `SELECT (xact_commit + xact_rollback)::int AS count FROM pg_stat_database WHERE datname = current_database()`
    return (await client.query<{ count: number }>(sql)).rows[0]!.count
  }
  const before = await read()
  await work()
  return (await read()) - before
}
