// The cost of open event streams: the API's memory, and its queries when idle and when events happen.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Child } from '../children.ts'
import { verdict } from '../figures.ts'
import type { EventsBench } from './rows.ts'
import type { Seeded } from './seed.ts'
import type { ServerUsage } from './server.ts'
import type { Written } from './writer.ts'

type Processes = { api: Child; readers: Child; writer: Child }

export async function measureStreams(
  bench: EventsBench,
  { api, readers, writer }: Processes,
  { client, tokens }: Seeded,
  port: number,
): Promise<void> {
  const streams = bench.size(1_000, 20)
  const idleSeconds = bench.size(30, 1)
  const settleMs = bench.size(2_000, 200)
  const url = `http://127.0.0.1:${port}`
  console.error(`${streams} event streams …`)
  await client.query('UPDATE webhook SET active = false')
  const ask = async () => {
    await sleep(settleMs)
    return api.ask<ServerUsage>('memory')
  }
  // Code loaded by the first requests isn't part of the cost of a stream either.
  await writer.ask<Written>({ url, tokens: tokens.slice(0, 5), perSecond: 50, seconds: 1 })
  const before = await ask()
  await readers.ask({ open: streams, port, tokens })
  const opened = await ask()
  await sleep(idleSeconds * 1000 - settleMs)
  const idle = await ask()
  const written = await writer.ask<Written>({
    url,
    tokens: tokens.slice(0, 1),
    perSecond: 20,
    seconds: bench.size(5, 1),
  })
  const busy = await ask()
  const received = await readers.ask<number>('events')
  await readers.ask('close')

  const residentMb = (Math.max(opened.residentBytes, idle.residentBytes) - before.residentBytes) / 2 ** 20
  bench.record('streams', `${residentMb.toFixed(0)} MB`)
  const idleQueries = idle.queries - opened.queries
  const figures = [
    `${streams} open event streams`,
    `${(opened.queries - before.queries) / streams} queries to open each`,
    `${idleQueries} in ${idleSeconds} s while nothing happens`,
    `${busy.queries - idle.queries} for ${written.events} events, their writing included, sent ${received} times`,
  ]
  console.log(figures.join('; '))
  console.log(verdict(residentMb < 200, `${streams} streams cost < 200 MB`, `${residentMb.toFixed(0)} MB`))
  console.log(verdict(idleQueries < streams / 10, 'no polling query per stream', `${idleQueries} for all of them`))
}
