import { webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { IssueFailure, nextAttemptAt, retryTable } from '../../../src/engines/certificates/failures.ts'
import { createIssuer, type Issuer } from '../../../src/engines/certificates/issuer.ts'
import { momentWithin, plannedRenewal, renewalIdOf } from '../../../src/engines/certificates/renewal.ts'
import { LostLease } from '../../../src/platform/database/lease.ts'
import { domainCertificate } from '../../../src/services/certificates/domain-certificates.ts'
import {
  type Lease,
  leaseOrder,
  publishChallenges,
  resetOrder,
  setOrderUrl,
} from '../../../src/services/certificates/orders.ts'
import { markVerified } from '../../../src/services/domains/states.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { type SmallAuthority, startSmallAuthority } from './small-authority.ts'

const hourMs = 3_600_000
const { signal } = new AbortController()

let api: TestApi
let authority: SmallAuthority
let engine: Issuer
beforeAll(async () => {
  authority = await startSmallAuthority()
  api = await startApi({ ACME_DIRECTORY_URL: authority.directoryUrl, ACME_CA_FILE: authority.caFile })
  engine = await createIssuer({ ...api.deps, challengeServers: { nameservers: [], edges: [] } })
  await api.newProject('site')
})
afterAll(async () => {
  await engine.close()
  await api.stop()
  await authority.stop()
})
beforeEach(() => {
  authority.orders.length = 0
  authority.refusal = null
  authority.window = null
  authority.meanwhile = null
  authority.otherChain = null
})

async function verified(name: string): Promise<string> {
  await api.call('POST', '/domains', { body: { project: 'site', name } })
  const { id } = await api.db.domain.findFirstOrThrow({ where: { name } })
  await markVerified(api.db, api.config, id, { method: 'txt', observed: { nameservers: [], txt: [] } })
  return id
}

const run = (domainId: string) => engine.issue.run({ domainId }, { attempt: 1, signal, async requireHeld() {} })
const runAtOf = async (key: string) =>
  (await api.db.job.findFirstOrThrow({ where: { kind: 'issue', key } })).runAt.getTime()

describe('a worker that lost an order to another one', () => {
  const domainOf = async (name: string) => (await api.call('GET', `/domains/${name}`)).body
  const past = () => new Date(Date.now() - 1_000)

  test('notes no failure on the certificate that the other one got', async () => {
    const id = await verified('overtaken.com')
    authority.meanwhile = async (path) => {
      if (path !== '/order') return
      authority.meanwhile = null
      await api.db.acmeOrder.updateMany({ data: { leasedUntil: past() } })
      await run(id)
      authority.refusal = { status: 500, body: {} }
    }
    await run(id)
    const { ssl, certificate } = await domainOf('overtaken.com')
    expect([ssl, certificate.lastError]).toEqual(['ACTIVE', null])
    expect((await api.db.domain.findUniqueOrThrow({ where: { id } })).certificateFailures).toBe(0)
  })

  test('begins none in its place, and leaves the challenges that the other one shows', async () => {
    const { db } = api
    const [lost, other] = ['lost', 'other'].map((worker) => ({ subject: 'acc_x away.com', worker })) as [Lease, Lease]
    const shown = { type: 'http-01', name: 'away.com', zone: null, token: 'token', value: 'value' } as const
    await leaseOrder(db, other, authority.directoryUrl)
    await publishChallenges(db, other, [shown], null)
    const anew = { names: ['away.com'], directory: authority.directoryUrl, key: Buffer.alloc(1) }
    await expect(resetOrder(db, lost, anew)).rejects.toThrow(LostLease)
    await expect(setOrderUrl(db, lost, 'https://ca.example/order/2')).rejects.toThrow(LostLease)
    await expect(publishChallenges(db, lost, [{ ...shown, token: 'late' }], null)).rejects.toThrow(LostLease)
    expect(await db.acmeChallenge.findMany({ where: { name: 'away.com' } })).toMatchObject([shown])
    await db.acmeOrder.deleteMany()
  })

  test('does not end a certificate that the other one has renewed', async () => {
    const id = await verified('renewed.com')
    await run(id)
    const managed = domainCertificate(api.db, api.config, id)
    await managed.expire()
    expect(await domainOf('renewed.com')).toMatchObject({ ssl: 'ACTIVE' })
    await api.db.certificate.updateMany({ where: { names: { has: 'renewed.com' } }, data: { notAfter: past() } })
    await managed.expire()
    expect(await domainOf('renewed.com')).toMatchObject({ ssl: 'EXPIRED' })
  })
})

describe('an authority that talks rubbish', () => {
  test.each([
    ['no certificate', 'no certificate'],
    ['a certificate that is cut off', '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'],
  ])('is asked for another order after it sent %s', async (title, chain) => {
    const name = `${title.replaceAll(' ', '-')}.com`
    const id = await verified(name)
    authority.otherChain = chain
    await run(id)
    const { ssl, certificate } = (await api.call('GET', `/domains/${name}`)).body
    expect([ssl, certificate.lastError]).toEqual(['ERROR', expect.stringContaining('cannot be read')])
    expect(await api.db.acmeOrder.count()).toBe(0)
  })

  test('is asked again within days, however long it wants to be left alone', async () => {
    const id = await verified('never.com')
    authority.refusal = { status: 429, body: {}, headers: { 'retry-after': '999999999' } }
    await run(id)
    const { certificate } = (await api.call('GET', '/domains/never.com')).body
    expect(Date.parse(certificate.nextAttemptAt) - Date.now()).toBeLessThan(9 * 24 * hourMs)
  })
})

describe('what the authority asks for is done', () => {
  test('a limit with Retry-After longer than the table is kept, and shown to the owner', async () => {
    authority.refusal = {
      status: 429,
      body: { type: 'urn:ietf:params:acme:error:rateLimited', detail: 'too many\u0000 certificates' },
      headers: { 'retry-after': String(48 * 3600) },
    }
    const id = await verified('limited.com')
    await run(id)
    const { ssl, certificate } = (await api.call('GET', '/domains/limited.com')).body
    expect(ssl).toBe('ERROR')
    expect(certificate.lastError).toBe('too many certificates (rateLimited)')
    expect(Date.parse(certificate.nextAttemptAt) - Date.now()).toBeGreaterThan(47.9 * hourMs)
    // Asked for once more, by a sweep or a restart: the authority does not hear of it.
    await run(id)
    expect(authority.orders).toHaveLength(1)
    // The owner proved the domain anew, so the wait is over.
    await api.db.domain.update({ where: { id }, data: { verified: false } })
    authority.refusal = null
    await markVerified(api.db, api.config, id, { method: 'txt', observed: { nameservers: [], txt: [] } })
    await run(id)
    expect((await api.call('GET', '/domains/limited.com')).body).toMatchObject({ ssl: 'ACTIVE' })
  })

  test('an earlier renewal is made when its window says so, naming what it replaces', async () => {
    const id = await verified('early.com')
    await run(id)
    const { chain } = await api.db.certificate.findFirstOrThrow({ where: { names: { has: 'early.com' } } })
    const renewalId = renewalIdOf(chain)!

    // Not yet: the job comes back when the authority wants to be asked again.
    authority.window = { start: new Date(Date.now() + 20 * hourMs), end: new Date(Date.now() + 21 * hourMs) }
    await api.db.job.deleteMany()
    await run(id)
    expect(authority.renewalInfos.at(-1)).toBe(renewalId)
    expect(authority.orders).toHaveLength(1)
    expect((await runAtOf(id)) - Date.now()).toBeGreaterThan(1.9 * hourMs)
    expect((await runAtOf(id)) - Date.now()).toBeLessThan(2.1 * hourMs)
    const planned = await api.db.certificate.findFirstOrThrow({ where: { names: { has: 'early.com' } } })
    expect(planned.renewAt.getTime() - Date.now()).toBeLessThan(21 * hourMs)

    authority.window = { start: new Date(Date.now() - 2 * hourMs), end: new Date(Date.now() - hourMs) }
    await run(id)
    expect(authority.orders).toHaveLength(2)
    expect(authority.orders[1]).toMatchObject({ replaces: renewalId })
    const { body } = await api.call('GET', '/events?subject=early.com')
    expect(body.events[0].type).toBe('domain.ssl.renewed')
  })

  test('nothing is renewed for a domain that is not verified any more, but its end is noticed', async () => {
    const id = await verified('gone.com')
    await run(id)
    const { inService } = await api.db.domain.findUniqueOrThrow({ where: { id }, include: { inService: true } })
    await api.db.domain.update({ where: { id }, data: { verified: false } })
    await api.db.certificate.update({ where: { id: inService!.id }, data: { renewAt: new Date() } })
    await api.db.job.deleteMany()
    await run(id)
    expect(authority.orders).toHaveLength(1)
    expect(await runAtOf(id)).toBe(inService!.notAfter.getTime())
    await api.db.certificate.update({ where: { id: inService!.id }, data: { notAfter: new Date() } })
    await run(id)
    expect((await api.call('GET', '/domains/gone.com')).body).toMatchObject({ ssl: 'EXPIRED' })
  })

  test('a verified domain whose job was lost or given up has one again after the next look', async () => {
    const id = await verified('forgotten.com')
    await api.db.job.deleteMany()
    await engine.start()
    expect(await api.db.job.count({ where: { kind: 'issue', key: id } })).toBe(1)
    await api.db.job.updateMany({ where: { key: id }, data: { failedAt: new Date() } })
    await engine.start()
    expect(await api.db.job.count({ where: { kind: 'issue', key: id, failedAt: null } })).toBe(1)
    expect(await api.db.job.count({ where: { kind: 'issue', key: 'platform deployments' } })).toBe(1)
  })
})

describe('times are reckoned', () => {
  test('from the table, with the last wait repeated, and never soon after a refusal', () => {
    const now = new Date()
    const waitOf = (kind: 'failed' | 'refused', failures: number) =>
      nextAttemptAt(retryTable, new IssueFailure(kind, ''), failures, now).getTime() - now.getTime()
    for (const [index, delayMs] of retryTable.delaysMs.entries()) {
      expect(waitOf('failed', index + 1)).toBeGreaterThanOrEqual(delayMs)
      expect(waitOf('failed', index + 1)).toBeLessThanOrEqual(delayMs * 1.1)
    }
    expect(waitOf('failed', 100)).toBeGreaterThanOrEqual(24 * hourMs)
    expect(waitOf('refused', 1)).toBeGreaterThanOrEqual(6 * hourMs)
    expect(waitOf('refused', 100)).toBeGreaterThanOrEqual(24 * hourMs)
  })

  test('so that a certificate dated back to most of its life is not renewed in a loop', () => {
    const now = new Date()
    const [notBefore, notAfter] = [new Date(now.getTime() - 90 * hourMs), new Date(now.getTime() + 9 * hourMs)]
    expect(plannedRenewal(notBefore, notAfter, now).getTime() - now.getTime()).toBeCloseTo(3 * hourMs, -3)
  })

  test('within the window of RFC 9773, the same each time it is read, and spread over certificates', () => {
    const [start, end] = [new Date(0), new Date(1_000_000)]
    const moments = Array.from({ length: 50 }, (_, index) => momentWithin(start, end, `crt_${index}`).getTime())
    expect(moments).toEqual(
      Array.from({ length: 50 }, (_, index) => momentWithin(start, end, `crt_${index}`).getTime()),
    )
    expect(Math.min(...moments)).toBeLessThan(200_000)
    expect(Math.max(...moments)).toBeGreaterThan(800_000)
    for (const moment of moments) expect(moment >= 0 && moment < 1_000_000).toBe(true)
  })

  test('by the identifier of RFC 9773, section 4.1', async () => {
    const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
    const keys = await webcrypto.subtle.generateKey(algorithm, false, ['sign', 'verify'])
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      serialNumber: '0087654321',
      name: 'CN=Example CA',
      signingAlgorithm: algorithm,
      keys,
      extensions: [new x509.AuthorityKeyIdentifierExtension('69885b6b87464041e1b37b847ba0ae2cde01c8d4')],
    })
    expect(renewalIdOf(certificate.toString('pem'))).toBe('aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE')
  })
})
