// Workers that lost a build to another one, which they have not heard yet: none of their ways out may end it.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildHandlers, openDisk } from '../../../src/engines/builder/index.ts'
import { createProofs } from '../../../src/engines/servers/index.ts'
import { LostLease } from '../../../src/platform/database/lease.ts'
import { sharedPackageRegistry, sharedPrograms, sharedSandbox } from '../../helpers/sandbox.ts'
import { type Platform, startPlatform } from './host.ts'

let platform: Platform
let handlers: ReturnType<typeof buildHandlers>
let hasRoom = true
beforeAll(async () => {
  platform = await startPlatform({}, false)
  const { api, artifacts } = platform
  const disk = openDisk({ directory: api.config.dataDir, reserveMb: 0, log: api.deps.log })
  handlers = buildHandlers({
    ...{ ...api.deps, artifacts, sandbox: await sharedSandbox(), servers: createProofs(api.deps) },
    ...{ packageRegistry: sharedPackageRegistry(), programs: sharedPrograms() },
    disk: { ...disk, hasRoom: async () => hasRoom },
  })
  await platform.project('site', { 'index.html': 'hello' })
})
afterAll(() => platform.stop())

const signal = new AbortController().signal
const held = { attempt: 1, signal, async requireHeld() {} }
const lost = { ...held, requireHeld: () => Promise.reject(new LostLease()) }
const stateOf = async (id: string) => (await platform.api.db.deployment.findUniqueOrThrow({ where: { id } })).state
const longAgo = () => new Date(Date.now() - 3_600_000).toISOString()

test('a worker that has waited too long for room does not end a build that another one has', async () => {
  const deploymentId = await platform.deploy('site')
  hasRoom = false
  const payload = { deploymentId, noDiskSince: longAgo() }
  await expect(handlers.build.run(payload, lost)).rejects.toThrow(LostLease)
  expect(await stateOf(deploymentId)).toBe('BUILDING')
  expect(await platform.log(deploymentId)).not.toContain('out of disk space')
  await handlers.build.run(payload, held)
  hasRoom = true
  expect(await stateOf(deploymentId)).toBe('ERROR')
})

test('a worker that found its account suspended does not cancel a build that another one has', async () => {
  const { db, accountId } = platform.api
  const deploymentId = await platform.deploy('site')
  const suspend = (suspendedAt: Date | null) => db.account.update({ where: { id: accountId }, data: { suspendedAt } })
  await suspend(new Date())
  await expect(handlers.build.run({ deploymentId }, lost)).rejects.toThrow(LostLease)
  expect(await stateOf(deploymentId)).toBe('BUILDING')
  await handlers.build.run({ deploymentId }, held)
  expect(await stateOf(deploymentId)).toBe('CANCELED')
  await suspend(null)
})

test('a worker that gives up a build while another one takes it does not end it', async () => {
  const deploymentId = await platform.deploy('site')
  const broken = new Error('broken')
  await expect(handlers.build.giveUp({ deploymentId }, broken, lost.requireHeld)).rejects.toThrow(LostLease)
  expect(await stateOf(deploymentId)).toBe('BUILDING')
  await handlers.build.giveUp({ deploymentId }, broken, held.requireHeld)
  expect(await stateOf(deploymentId)).toBe('ERROR')
})
