import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { LostLease } from '../../src/platform/database/lease.ts'
import { newId } from '../../src/platform/ids.ts'
import { domainCertificate } from '../../src/services/certificates/domain-certificates.ts'
import { deleteUnusedCertificates, queueOutdatedIssues } from '../../src/services/certificates/jobs.ts'
import {
  type Challenge,
  deleteOldOrders,
  endOrder,
  extendLease,
  leaseOrder,
  publishChallenges,
  releaseOrder,
  resetOrder,
  setOrderUrl,
} from '../../src/services/certificates/orders.ts'
import { sharedApi, type TestApi } from '../helpers/api.ts'

const hourMs = 3_600_000
const ago = (ms: number) => new Date(Date.now() - ms)

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  await api.newProject('site')
})
afterAll(() => api.stop())
beforeEach(async () => {
  await api.db.acmeOrder.deleteMany()
  await api.db.domain.deleteMany()
  await api.db.certificate.deleteMany()
  await api.db.job.deleteMany()
})

async function newDomain(
  name: string,
  data: object = {},
  owner = { token: api.token, project: 'site' },
): Promise<string> {
  const { token, project } = owner
  expect((await api.call('POST', '/domains', { body: { project, name }, token })).status).toBe(201)
  const { id } = await api.db.domain.findFirstOrThrow({ where: { name }, orderBy: { id: 'desc' } })
  await api.db.domain.update({ where: { id }, data })
  return id
}

async function newCertificate(data: object = {}): Promise<string> {
  const id = newId('crt')
  const times = { notBefore: new Date(), notAfter: new Date(), renewAt: new Date() }
  const row = { names: [], chain: '', key: Uint8Array.of(1), issuer: 'CN=Old', serial: '1', directory: '' }
  await api.db.certificate.create({ data: { id, ...row, ...times, ...data } })
  return id
}

describe('an order', () => {
  const lease = { subject: 'acc example.test', worker: 'one' }
  const other = { ...lease, worker: 'other' }
  const directory = 'https://authority.example/dir'
  const challenge = (name: string, zone: string | null, token: string): Challenge => ({
    type: zone ? 'dns-01' : 'http-01',
    name,
    zone,
    token,
    value: `${token}.value`,
  })
  const serialOf = async (name: string) => (await api.db.domain.findFirstOrThrow({ where: { name } })).serial

  test('is leased to one worker at a time, and to another when the lease is over', async () => {
    const none = { subject: lease.subject, names: [], directory, url: '', key: null }
    expect(await leaseOrder(api.db, lease, directory)).toEqual(none)
    expect(await leaseOrder(api.db, other, directory)).toBeNull()
    expect(await extendLease(api.db, lease)).toBe(true)
    await resetOrder(api.db, lease, { names: ['example.test'], directory, key: Buffer.from('key') })
    await api.db.acmeOrder.updateMany({ data: { leasedUntil: ago(1_000) } })
    const taken = await leaseOrder(api.db, other, directory)
    expect(taken).toMatchObject({ names: ['example.test'], url: '' })
    expect(Buffer.from(taken!.key!).toString()).toBe('key')
    expect(await extendLease(api.db, lease)).toBe(false)
    expect(await endOrder(api.db, lease)).toBe(false)
    await expect(setOrderUrl(api.db, lease, 'https://authority.example/lost')).rejects.toThrow(LostLease)
    expect(await api.db.acmeOrder.findFirst()).toMatchObject({ leasedBy: 'other', url: '' })
  })

  test('is given back with its address, and deleted without one', async () => {
    await leaseOrder(api.db, lease, directory)
    await setOrderUrl(api.db, lease, 'https://authority.example/order')
    await releaseOrder(api.db, other)
    expect(await api.db.acmeOrder.findFirst()).toMatchObject({ leasedBy: 'one' })
    await releaseOrder(api.db, lease)
    expect(await api.db.acmeOrder.findFirst()).toMatchObject({ leasedBy: null, leasedUntil: null })
    await leaseOrder(api.db, other, directory)
    await setOrderUrl(api.db, other, '')
    await releaseOrder(api.db, other)
    expect(await api.db.acmeOrder.count()).toBe(0)
  })

  test('shows each challenge once, and moves the serial of a zone whenever its challenges come or go', async () => {
    await newDomain('example.test')
    const before = await serialOf('example.test')
    await leaseOrder(api.db, lease, directory)
    const challenges = [
      challenge('example.test', 'example.test', 'a'),
      challenge('www.example.test', 'example.test', 'b'),
      challenge('example.test', 'berth.example', 'c'),
      challenge('example.test', null, 'd'),
    ]
    await expect(publishChallenges(api.db, other, challenges, null)).rejects.toThrow(LostLease)
    expect(await api.db.acmeChallenge.count()).toBe(0)
    for (let time = 0; time < 2; time++) await publishChallenges(api.db, lease, challenges, 'berth.example')
    expect(await api.db.acmeChallenge.count()).toBe(4)
    expect(await serialOf('example.test')).toBe(before + 1)
    const platform = await api.db.platformZone.findUniqueOrThrow({ where: { name: 'berth.example' } })
    await resetOrder(api.db, lease, { names: ['example.test'], directory, key: Buffer.from('key') })
    expect(await api.db.acmeChallenge.count()).toBe(0)
    expect(await serialOf('example.test')).toBe(before + 2)
    await publishChallenges(api.db, lease, challenges, null)
    expect(await endOrder(api.db, other)).toBe(false)
    expect(await serialOf('example.test')).toBe(before + 3)
    expect(await endOrder(api.db, lease)).toBe(true)
    expect(await api.db.acmeChallenge.count()).toBe(0)
    expect(await serialOf('example.test')).toBe(before + 4)
    const moved = await api.db.platformZone.findUniqueOrThrow({ where: { name: 'berth.example' } })
    expect(moved.serial).toBe(platform.serial + 3)
  })

  test('is deleted when a week old, with its challenges, unless somebody works on it', async () => {
    await newDomain('example.test')
    const worked = { subject: 'worked on', worker: 'one' }
    const young = { subject: 'young', worker: 'one' }
    for (const one of [lease, worked, young]) await leaseOrder(api.db, one, directory)
    await publishChallenges(api.db, lease, [challenge('example.test', 'example.test', 'a')], null)
    const before = await serialOf('example.test')
    await api.db.acmeOrder.updateMany({
      where: { subject: { in: [lease.subject, worked.subject] } },
      data: { createdAt: ago(7 * 24 * hourMs + 1_000) },
    })
    await api.db.acmeOrder.updateMany({ where: { subject: lease.subject }, data: { leasedUntil: null } })
    await deleteOldOrders(api.db)
    const left = await api.db.acmeOrder.findMany({ orderBy: { subject: 'asc' } })
    expect(left.map(({ subject }) => subject)).toEqual(['worked on', 'young'])
    expect(await serialOf('example.test')).toBe(before + 1)
  })
})

describe('a certificate', () => {
  test('is proved in a zone of the same account that is here, and nowhere else', async () => {
    const { token } = await api.newAccount()
    await api.newProject('theirs', { token })
    await newDomain('example.test', { verified: true, method: 'nameservers' })
    const theirs = await newDomain('other.test', { method: 'nameservers' }, { token, project: 'theirs' })
    const zoneOf = async (name: string, data: object = {}) => {
      const id = await newDomain(name, { verified: true, method: 'txt', ...data })
      return (await domainCertificate(api.db, api.config, id).find())!.holders[0].zone
    }
    expect(await zoneOf('*.example.test')).toBe('example.test')
    expect(await zoneOf('a.b.example.test')).toBe('a.b.example.test')
    expect(await zoneOf('badexample.test')).toBeNull()
    const below = await newDomain('a.other.test', { verified: true, method: 'txt' })
    await api.db.domain.update({ where: { id: theirs }, data: { verified: true } })
    expect((await domainCertificate(api.db, api.config, below).find())!.holders[0].zone).toBeNull()
    // A wildcard has no zone of its own.
    expect(await zoneOf('third.test')).toBeNull()
    expect(await zoneOf('*.third.test', { method: 'nameservers' })).toBeNull()
    expect(await zoneOf('a.third.test')).toBeNull()
  })

  test('of another development CA is replaced now, unless its job runs, waits after a failure, or is due', async () => {
    const certificateId = await newCertificate()
    const later = new Date(Date.now() + 24 * hourMs)
    const job = async (name: string, domain: object = {}, data: object = {}) => {
      const key = await newDomain(name, { verified: true, certificateId, ...domain })
      await api.db.job.deleteMany({ where: { key } })
      await api.db.job.create({ data: { kind: 'issue', key, payload: {}, runAt: later, ...data } })
      return key
    }
    const outdated = await job('a.test')
    await job('b.test', { certificateFailures: 1 })
    await job('c.test', {}, { lockedBy: 'worker' })
    await job('d.test', { verified: false })
    await job('e.test', { certificateId: await newCertificate({ issuer: 'CN=New' }) })
    await job('f.test', { certificateId: await newCertificate({ directory: 'https://authority.example/dir' }) })
    await job('g.test', { certificateId: null })
    await queueOutdatedIssues(api.db, 'CN=New')
    const moved = await api.db.job.findMany({ where: { kind: 'issue', runAt: { lt: later } } })
    expect(moved.map(({ key }) => key)).toEqual([outdated])
    // Without a development CA, each of them gives way.
    await queueOutdatedIssues(api.db, null)
    expect(await api.db.job.count({ where: { kind: 'issue', runAt: { lt: later } } })).toBe(2)
  })

  test('that nothing refers to is deleted after an hour', async () => {
    const createdAt = ago(hourMs + 1_000)
    const [used, own, young] = [
      await newCertificate({ createdAt }),
      await newCertificate({ createdAt }),
      await newCertificate(),
    ]
    await newCertificate({ createdAt })
    await newDomain('example.test', { certificateId: used })
    await api.db.platformCertificate.create({ data: { purpose: 'api', certificateId: own } })
    await deleteUnusedCertificates(api.db)
    const left = await api.db.certificate.findMany()
    expect(left.map(({ id }) => id).sort()).toEqual([used, own, young].sort())
  })
})
