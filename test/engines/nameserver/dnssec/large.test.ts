// A large signed zone: complete before it is served, and after a change.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RecordsByName } from '../../../../src/engines/nameserver/zone-records.ts'
import { newId } from '../../../../src/platform/ids.ts'
import { isMissing, startWorld, type World } from '../transfer/world.ts'
import { faultsOf, signZone, transferred } from './world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.stop())

const missing = isMissing('dig', 'dnssec-verify', 'ldns-verify-zone')

test.skipIf(missing)('a large zone is signed, and stays so', async () => {
  await world.addDomain('large.dev')
  const { db } = world.api
  const { id: domainId } = await db.domain.findFirstOrThrow({ where: { name: 'large.dev' } })
  const now = new Date()
  const data = Array.from({ length: 1_000 }, (_, index) => ({
    id: newId('rec'),
    domainId,
    type: 'TXT',
    name: `a-name-of-some-length-${index}.${index % 10}`,
    value: `"a text that makes the zone a large one ${index}"`,
    ttl: 300,
    createdAt: now,
    updatedAt: now,
  }))
  await db.dnsRecord.createMany({ data })
  await db.domain.update({ where: { id: domainId }, data: { serial: { increment: 1 } } })
  await signZone(world, 'large.dev')
  const { table } = world.nameserver.snapshot!
  expect(table.get('large.dev')!.records).toBeInstanceOf(RecordsByName)
  expect(await faultsOf('large.dev', await transferred(world, 'large.dev'))).toBe('')
  await world.addRecord('large.dev', 'A', 'new.3', '192.0.2.1')
  await world.settled('large.dev')
  const text = await transferred(world, 'large.dev')
  expect(text).toContain('new.3.large.dev.')
  expect(await faultsOf('large.dev', text)).toBe('')
})
