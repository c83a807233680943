// The time from committing a new record to its first answer on every listener, while records are written at a steady rate.
import { setTimeout as sleep } from 'node:timers/promises'
import { rcodes } from '../../src/dns/packet/numbers.ts'
import { closeDatabase, openDatabase } from '../../src/platform/database/database.ts'
import { createRecord } from '../../src/services/dns/index.ts'
import type { Actor } from '../../src/services/identity/index.ts'
import type { Bench } from '../group.ts'
import { createDnsClient, type DnsClient } from './client.ts'
import type { Server } from './servers.ts'
import { accountId } from './zones.ts'

export type Changes = {
  writesPerSecond: number
  ms: number[]
  /** The answer times of an unchanged zone meanwhile. */
  othersMs: number[]
}

/** Where the changes happen: `zone` is called for each; `other` has an address and doesn't change. Changes in signed zones
 * count as answered with their signature. */
export type Place = { url: string; server: Server; zone(): string; other: string; signed: boolean }

const actor: Actor = { accountId, tokenId: 'tok_1', scopes: ['*'], projectIds: null }
const perSecond = 100
const giveUpMs = 30_000
const pauseMs = 1

/**
 * Creates records like POST, so a write ends when its 201 would be sent. Each name is queried just before, so that the
 * answer must replace a cached denial.
 */
export async function measureChanges(bench: Pick<Bench, 'size'>, place: Place, seconds: number): Promise<Changes> {
  const warmUpWrites = bench.size(50, 5)
  const { url, server, zone: zoneOf, other, signed } = place
  console.error(`${perSecond} writes a second for ${seconds} s …`)
  // A slow machine gives a slow result instead of a failed run.
  const db = openDatabase(url, 10, { limits: { lockMs: 60_000, statementMs: 60_000, waitMs: 60_000 } })
  const dnsClients = await Promise.all(server.ports.map((port) => createDnsClient(port, '127.0.0.1', signed)))
  const run = Math.floor(performance.now()).toString(36)
  const write = async (number: number): Promise<number> => {
    const zone = zoneOf()
    const name = `new-${run}-${number}.${zone}`
    await Promise.all(dnsClients.map((dnsClient) => dnsClient.query(name, 'A')))
    await createRecord(db, actor, zone, { type: 'A', name, value: '192.0.2.1' })
    const committedMs = performance.now()
    await Promise.all(dnsClients.map((dnsClient) => untilThere(dnsClient, name, committedMs, signed ? 2 : 1)))
    return performance.now() - committedMs
  }
  try {
    for (let number = 0; number < warmUpWrites; number++) await write(number)
    const startedMs = performance.now()
    const others = askWhile(server.ports[0]!, other, () => performance.now() - startedMs < seconds * 1000)
    const writes: Promise<number>[] = []
    for (let number = 0; number < perSecond * seconds; number++) {
      // Scheduled by the clock instead of by the previous write, so that a slow one doesn't reduce the load.
      const early = startedMs + (number * 1000) / perSecond - performance.now()
      if (early > 0) await sleep(early)
      const one = write(warmUpWrites + number)
      one.catch(() => {})
      writes.push(one)
    }
    const writesPerSecond = (writes.length * 1000) / (performance.now() - startedMs)
    return { writesPerSecond, ms: await Promise.all(writes), othersMs: await others }
  } finally {
    for (const dnsClient of dnsClients) dnsClient.close()
    await closeDatabase(db)
  }
}

/** The answer times of consecutive queries. */
export async function askWhile(port: number, name: string, goOn: () => boolean): Promise<number[]> {
  const dnsClient = await createDnsClient(port)
  const ms: number[] = []
  try {
    while (goOn()) {
      const startedMs = performance.now()
      await dnsClient.query(name, 'A')
      ms.push(performance.now() - startedMs)
      await sleep(pauseMs)
    }
  } finally {
    dnsClient.close()
  }
  return ms
}

async function untilThere(dnsClient: DnsClient, name: string, sinceMs: number, records: number): Promise<void> {
  while (performance.now() - sinceMs < giveUpMs) {
    const answer = await dnsClient.query(name, 'A', 500)
    if (answer?.rcode === rcodes.NOERROR && answer.answers === records) return
    await sleep(pauseMs)
  }
  throw new Error(`${name} was not answered ${giveUpMs} ms after its commit`)
}
