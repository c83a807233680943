// From the commit of a new record to its first answer, on every listener, while records are written at a steady rate.
import { setTimeout as sleep } from 'node:timers/promises'
import { rcodes } from '../../src/dns/packet/numbers.ts'
import { closeDatabase, openDatabase } from '../../src/platform/database.ts'
import { createRecord } from '../../src/services/dns/dns-records.ts'
import type { Actor } from '../../src/services/tokens/actor.ts'
import { type Asker, createAsker } from './asker.ts'
import { randomNumbers } from './mix.ts'
import type { Server } from './servers.ts'
import { accountId, zoneName } from './zones.ts'

export type Changes = { writesPerSecond: number; ms: number[] }

const actor: Actor = { accountId, tokenId: 'tok_1', scopes: ['*'], projectIds: null }
const perSecond = 100
const giveUpMs = 5_000
const pauseMs = 1
const warmUpWrites = 50

/**
 * Records are made as a POST makes them, so a write is over when its 201 would be sent. Each name was asked for just
 * before, so that the answer must replace one that is known not to exist.
 */
export async function measureChanges(url: string, server: Server, zones: number, seconds: number): Promise<Changes> {
  console.error(`${perSecond} writes a second into ${zones.toLocaleString('en')} zones for ${seconds} s …`)
  const db = openDatabase(url, 10)
  const askers = await Promise.all(server.ports.map((port) => createAsker(port)))
  const random = randomNumbers(3)
  const write = async (number: number): Promise<number> => {
    const zone = zoneName(1 + Math.floor(random() * zones))
    const name = `new-${number}.${zone}`
    await Promise.all(askers.map((asker) => asker.ask(name, 'A')))
    await createRecord(db, actor, zone, { type: 'A', name, value: '192.0.2.1' })
    const committedMs = performance.now()
    await Promise.all(askers.map((asker) => untilThere(asker, name, committedMs)))
    return performance.now() - committedMs
  }
  try {
    for (let number = 0; number < warmUpWrites; number++) await write(number)
    const startedMs = performance.now()
    const writes: Promise<number>[] = []
    for (let number = 0; number < perSecond * seconds; number++) {
      // By the clock and not by the write before: a slow one must not thin out the load.
      const early = startedMs + (number * 1000) / perSecond - performance.now()
      if (early > 0) await sleep(early)
      const one = write(warmUpWrites + number)
      one.catch(() => {})
      writes.push(one)
    }
    const writesPerSecond = (writes.length * 1000) / (performance.now() - startedMs)
    return { writesPerSecond, ms: await Promise.all(writes) }
  } finally {
    for (const asker of askers) asker.leave()
    await closeDatabase(db)
  }
}

async function untilThere(asker: Asker, name: string, sinceMs: number): Promise<void> {
  while (performance.now() - sinceMs < giveUpMs) {
    const answer = await asker.ask(name, 'A', 500)
    if (answer?.rcode === rcodes.NOERROR && answer.answers === 1) return
    await sleep(pauseMs)
  }
  throw new Error(`${name} was not answered ${giveUpMs} ms after its commit`)
}
