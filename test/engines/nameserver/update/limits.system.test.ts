// What updates may cost: rates, turns, and a database that does not answer.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTurns } from '../../../../src/engines/nameserver/update/turns.ts'
import { until } from '../../../helpers/until.ts'
import { askUdp } from '../packets.ts'
import { addText, startUpdates, type UpdateWorld } from './world.ts'

test('zones take turns, one work at a time in each, and what is too much is not taken', async () => {
  const turns = createTurns({ atOnce: 2, waiting: 6, waitingPerZone: 3 })
  const began: string[] = []
  const ends: (() => void)[] = []
  const work = (name: string) => () => {
    began.push(name)
    return new Promise<string>((resolve, reject) =>
      ends.push(() => (name.endsWith('!') ? reject(new Error(name)) : resolve(name))),
    )
  }
  const first = ['a1!', 'a2', 'a3'].map((name) => turns('a', work(name)))
  expect(turns('a', work('a4'))).toBeNull()
  const others = [turns('b', work('b1')), turns('c', work('c1')), turns('d', work('d1'))]
  expect(turns('e', work('e1'))).toBeNull()
  expect(began).toEqual(['a1!', 'b1'])
  const lost = expect(first[0]).rejects.toThrow('a1!')
  ends[0]!()
  await lost
  await until(() => began.length === 3)
  expect(began[2]).toBe('c1')
  for (let at = 1; at < 6; at++) {
    await until(() => ends.length > at)
    ends[at]!()
  }
  expect(await Promise.all([...first.slice(1), ...others])).toEqual(['a2', 'a3', 'b1', 'c1', 'd1'])
  expect(turns('e', async () => 'e1')).not.toBeNull()
})

let world: UpdateWorld
beforeAll(async () => {
  world = await startUpdates({ RATE_LIMIT_PER_MINUTE: '30' })
})
afterAll(() => world?.stop())

test('a zone that is locked holds up its own updates, and neither answers nor other zones', async () => {
  for (const zone of ['held.com', 'free.com']) await world.newDomain(zone)
  const [held, free] = [await world.newKey('held.com'), await world.newKey('free.com')]
  await until(async () => (await askUdp(world.ports[0]!, 'held.com', 'SOA')).rcode === 'NOERROR')
  const waiting: Promise<string>[] = []
  await world.db.$transaction(async (db) => {
    await db.$queryRaw`SELECT id FROM domain WHERE name = 'held.com' FOR UPDATE`
    for (let i = 0; i < 5; i++) waiting.push(world.update(held, { updates: [addText(`x${i}.held.com`, 'a')] }))
    expect(await world.update(free, { updates: [addText('free.com', 'a')] })).toBe('NOERROR')
    expect((await askUdp(world.ports[0]!, 'held.com', 'SOA')).rcode).toBe('NOERROR')
  })
  expect(await Promise.all(waiting)).toEqual(Array(5).fill('NOERROR'))
})

test('a key that is used too often is refused, and others are not', async () => {
  await world.newDomain('busy.com')
  const [busy, calm] = [await world.newKey('busy.com'), await world.newKey('busy.com')]
  const once = (key: typeof busy) => world.update(key, { updates: [] })
  // Across the end of a minute there are as many again.
  const codes: string[] = []
  await until(async () => codes.push(await once(busy)) && codes.at(-1) === 'REFUSED')
  expect(codes.length).toBeGreaterThan(20)
  expect(await once(calm)).toBe('NOERROR')
})
