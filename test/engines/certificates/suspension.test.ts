// Certificates of a suspended account: none is issued or renewed, and what was due is made when it is resumed.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createIssuer, type Issuer } from '../../../src/engines/certificates/issuer.ts'
import { startWorker, type Worker } from '../../../src/jobs/worker.ts'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { queueMissingJobs } from '../../../src/services/certificates/jobs.ts'
import { markUnverified, markVerified, recordCheck } from '../../../src/services/domains/states.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
let engine: Issuer
let worker: Worker
let desk: string
beforeAll(async () => {
  api = await sharedApi()
  engine = await createIssuer(api.deps)
  worker = startWorker(api.db, api.deps.notifications, api.deps.log, { issue: engine.issue })
  desk = (await createAccount(api.db, 'the desk', ['operator'])).token
  await api.newProject('hello')
})
afterAll(async () => {
  await worker.stop()
  await engine.close()
  await api.stop()
})

const observed = { nameservers: [], txt: [] }
const suspend = async (suspended: boolean) => {
  const answer = await api.call('PATCH', `/operator/accounts/${api.accountId}`, { token: desk, body: { suspended } })
  expect(answer.status).toBe(200)
}
async function attach(name: string): Promise<string> {
  await api.call('POST', '/domains', { body: { project: 'hello', name } })
  return (await api.db.domain.findFirstOrThrow({ where: { name } })).id
}
const domain = (id: string) => api.db.domain.findUniqueOrThrow({ where: { id }, include: { inService: true } })
const jobs = (key: string) => api.db.job.count({ where: { kind: 'issue', key, failedAt: null } })

test('a domain that is verified meanwhile gets its certificate when the account is resumed', async () => {
  const id = await attach('later.test')
  await suspend(true)
  await markVerified(api.db, api.config, id, { method: 'txt', observed })
  await until(async () => (await jobs(id)) === 0)
  expect((await domain(id)).ssl).toBe('PENDING')
  await queueMissingJobs(api.db)
  expect(await jobs(id)).toBe(0)
  await suspend(false)
  await until(async () => (await domain(id)).ssl === 'ACTIVE')
})

test('a renewal that was due meanwhile is made when the account is resumed, after the end too', async () => {
  const id = await attach('due.test')
  await markVerified(api.db, api.config, id, { method: 'txt', observed })
  await until(async () => (await domain(id)).ssl === 'ACTIVE')
  const first = (await domain(id)).inService!
  await suspend(true)
  const past = new Date(Date.now() - 60_000)
  await api.db.certificate.update({ where: { id: first.id }, data: { renewAt: past, notAfter: past } })
  await api.db.job.updateMany({ where: { kind: 'issue', key: id }, data: { runAt: past } })
  await until(async () => (await domain(id)).ssl === 'EXPIRED')
  expect((await domain(id)).inService!.id).toBe(first.id)
  await suspend(false)
  await until(async () => (await domain(id)).ssl === 'ACTIVE')
  expect((await domain(id)).inService!.id).not.toBe(first.id)
})

test('checks that miss the proof meanwhile do not count: its zones may be refused', async () => {
  const id = await attach('kept.test')
  await markVerified(api.db, api.config, id, { method: 'txt', observed })
  const miss = async () => {
    await api.db.domain.update({ where: { id }, data: { missedAt: null } })
    return recordCheck(api.db, id, { outcome: 'missed', observed, reason: 'not there' })
  }
  await suspend(true)
  for (let n = 0; n < 4; n++) expect(await miss()).toEqual({ verified: true, misses: 0 })
  expect(await markUnverified(api.db, api.config, id, { observed, reason: 'not there' })).toBeNull()
  await suspend(false)
  expect(await miss()).toEqual({ verified: true, misses: 1 })
})
