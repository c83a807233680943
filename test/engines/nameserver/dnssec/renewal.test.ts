// Signatures are renewed in time, whatever becomes of the zones of others.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../../helpers/until.ts'
import { startWorld, type World } from '../transfer/world.ts'
import { signZone } from './world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.stop())

test('signatures of a claim that is served no more keep no others from being renewed', async () => {
  const { db, newAccount, newProject, call } = world.api
  for (const name of ['lost.dev', 'kept.dev']) {
    await world.addDomain(name)
    await signZone(world, name)
  }
  // Somebody else proves the name: the first claim has its key and its signatures still.
  const { token } = await newAccount()
  await newProject('other', { token })
  await call('POST', '/domains', { token, body: { project: 'other', name: 'lost.dev' } })
  const [lost, other] = await db.domain.findMany({ where: { name: 'lost.dev' }, orderBy: { id: 'asc' } })
  await db.domain.update({ where: { id: other!.id }, data: { verified: true, serial: { increment: 1 } } })
  const { table, renewSignatures } = world.nameserver.snapshot!
  await until(() => table.get('lost.dev')?.id === other!.id)
  const kept = await world.settled('kept.dev')
  await db.zoneSignature.updateMany({ data: { renewAt: new Date(0) } })
  await db.zoneSignature.updateMany({ where: { key: { domainId: lost!.id } }, data: { renewAt: new Date(-1) } })
  await renewSignatures()
  expect(await db.zoneSignature.count({ where: { renewAt: { lt: new Date() } } })).toBe(0)
  expect(await world.settled('kept.dev')).toBe(kept + 1)
})
