import { connect as connectTcp } from 'node:net'
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { Budget } from '../../../src/platform/http/budget.ts'
import { closed } from '../../helpers/closed.ts'
import { postgresUrl } from '../../helpers/database.ts'
import { until } from '../../helpers/until.ts'
import { type Issued, serveCertificate, storeCertificate } from '../../tls/authority.ts'
import { type HttpsWorld, serialOf, startHttpsWorld } from './https-world.ts'

let world: HttpsWorld
beforeAll(async () => {
  world = await startHttpsWorld()
  await world.site('shop', { 'index.html': 'shop', 'page.html': 'page' })
  await world.secure('shop', 'shop.test', ['shop.test', 'www.shop.test'])
  await world.site('other', { 'index.html': 'other' })
  await world.secure('other', 'other.test')
})
afterAll(() => world.stop())

const namesShown = (socket: TLSSocket) => socket.getPeerCertificate().subjectaltname
const shows = (servername: string, issued: Issued) =>
  until(async () => (await world.serialAt(servername)) === serialOf(issued))
const refusal = (servername: string, options?: ConnectionOptions) =>
  world.handshake(servername, options).then(
    (socket) => {
      socket.destroy()
      return 'accepted'
    },
    (error: NodeJS.ErrnoException) => error.code,
  )

describe('a client', () => {
  test('gets the certificate of the name it asks for, whatever its case, with www beside it', async () => {
    for (const [name, names] of [
      ['shop.test', 'DNS:shop.test, DNS:www.shop.test'],
      ['WWW.shop.test', 'DNS:shop.test, DNS:www.shop.test'],
      ['other.test', 'DNS:other.test'],
    ] as const) {
      const socket = await world.handshake(name)
      expect(namesShown(socket)).toBe(names)
      socket.destroy()
    }
    expect(await world.fetch('www.shop.test', '/')).toMatchObject({ status: 200, text: 'shop' })
  })

  test('who asks for an unknown name, for www that the certificate lacks, or for none is refused and shown nothing', async () => {
    const seen: unknown[] = []
    const spy = { checkServerIdentity: (...args: unknown[]) => void seen.push(args), rejectUnauthorized: false }
    for (const name of ['unknown.test', 'www.other.test', 'a.shop.test', 'localhost', 'shop.localhost']) {
      expect([name, await refusal(name, spy)]).toEqual([name, 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME'])
    }
    expect(await refusal('', spy)).toBe('ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE')
    expect(seen).toEqual([])
  })

  test('who knows nothing newer than TLS 1.1 is refused; TLS 1.2 and 1.3 are spoken', async () => {
    const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const
    expect(await refusal('shop.test', old)).toMatch(/PROTOCOL_VERSION/)
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const socket = await world.handshake('shop.test', { minVersion: version, maxVersion: version })
      expect(socket.getProtocol()).toBe(version)
      socket.destroy()
    }
  })

  test('who comes back resumes the session', async () => {
    const first = await world.handshake('shop.test', { maxVersion: 'TLSv1.2' })
    const session = first.getSession()
    first.destroy()
    const second = await world.handshake('shop.test', { maxVersion: 'TLSv1.2', session })
    expect(second.isSessionReused()).toBe(true)
    second.destroy()
  })

  test('who sends its requests without waiting for a response has one of them handled in a turn', async () => {
    const later = vi.spyOn(Budget.prototype, 'later')
    const socket = await world.handshake('shop.test')
    const answer = socket.toArray()
    const get = 'GET / HTTP/1.1\r\nHost: shop.test\r\n'
    socket.write(`${`${get}\r\n`.repeat(100)}${get}Connection: close\r\n\r\n`)
    expect(String(Buffer.concat(await answer)).match(/\nshop/g)).toHaveLength(101)
    expect(later.mock.calls.length).toBeGreaterThanOrEqual(100)
    later.mockRestore()
  })

  test('who breaks a handshake off, or talks nonsense or plain HTTP, harms nobody', async () => {
    for (const bytes of ['GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n', '\x16\x03\x01\x02\x00\x01', '\0'.repeat(500)]) {
      const socket = connectTcp(world.httpsPort, '127.0.0.1')
      const end = closed(socket.resume())
      socket.write(bytes, 'latin1')
      if (bytes.startsWith('\x16')) socket.resetAndDestroy()
      await end
    }
    expect((await world.fetch('shop.test', '/')).status).toBe(200)
  })

  test('who sends a host that the certificate of the connection does not cover gets 421', async () => {
    expect(await world.fetch('other.test', '/', { servername: 'shop.test' })).toMatchObject({ status: 421 })
    expect(await world.fetch('www.shop.test', '/', { servername: 'shop.test' })).toMatchObject({ status: 200 })
    expect(await world.fetch('shop.test:8443', '/', { servername: 'shop.test' })).toMatchObject({ status: 200 })
    expect(await world.fetch('shop.localhost', '/', { servername: 'shop.test' })).toMatchObject({ status: 421 })
  })
})

describe('a certificate', () => {
  test('that is replaced is in service at once, and open connections live on', async () => {
    await world.site('renew', { 'index.html': 'renewed' })
    await world.secure('renew', 'renew.test')
    const before = await world.handshake('renew.test')
    const issued = await world.authority.issue(['renew.test'])
    await serveCertificate(world.db, world.vault, 'renew.test', issued)
    // By its notification: the next comparison with the database is minutes away.
    await shows('renew.test', issued)
    before.write('GET / HTTP/1.1\r\nHost: renew.test\r\nConnection: close\r\n\r\n')
    expect(Buffer.concat(await before.toArray()).toString()).toMatch(/^HTTP\/1.1 200 OK.*renewed$/s)
  })

  test('of a domain that is no longer verified is not shown', async () => {
    await world.site('lost', { 'index.html': 'lost' })
    await world.secure('lost', 'lost.test')
    const { id } = await world.db.domain.findFirstOrThrow({ where: { name: 'lost.test' } })
    await world.db.domain.update({ where: { id }, data: { verified: false } })
    await until(async () => (await refusal('lost.test')) === 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME')
  })

  test('of a wildcard is good for one label, and gives way to a name of its own', async () => {
    await world.site('wild', { 'index.html': 'wild' })
    await world.secure('wild', 'wild.test')
    await world.secure('wild', '*.wild.test')
    await world.secure('other', 'exact.wild.test')
    expect(await world.fetch('a.wild.test', '/')).toMatchObject({ status: 200, text: 'wild' })
    expect(await refusal('a.b.wild.test')).toBe('ERR_SSL_TLSV1_UNRECOGNIZED_NAME')
    const socket = await world.handshake('exact.wild.test')
    expect(namesShown(socket)).toBe('DNS:exact.wild.test')
    socket.destroy()
  })

  test('of the platform covers its own hosts; the newest of several is shown, and the next when it goes', async () => {
    const older = await world.authority.issue(['apps.test', '*.apps.test'])
    await storeCertificate(world.db, world.vault, older)
    const newer = await world.authority.issue(['apps.test', '*.apps.test'])
    const id = await storeCertificate(world.db, world.vault, newer)
    await shows('any.apps.test', newer)
    await world.db.certificate.delete({ where: { id } })
    await shows('any.apps.test', older)
  })

  test('that cannot be used costs its own host alone', async () => {
    await world.site('broken', { 'index.html': 'broken' })
    await world.attach('broken', 'broken.test')
    const issued = await world.authority.issue(['broken.test'])
    await serveCertificate(world.db, world.vault, 'broken.test', { ...issued, chain: 'not a certificate' })
    await world.secure('broken', 'after.broken.test')
    expect(await refusal('broken.test')).toBe('ERR_SSL_TLSV1_UNRECOGNIZED_NAME')
    // Its site stays reachable in the clear.
    expect(await world.get('broken.test', '/')).toMatchObject({ status: 200, text: 'broken' })
    expect((await world.fetch('shop.test', '/')).status).toBe(200)
  })

  test('for names that are not the domain’s is never shown for it', async () => {
    await world.site('mixed', { 'index.html': 'mixed' })
    await world.attach('mixed', 'mixed.test')
    const { chain, key } = await world.authority.issue(['elsewhere.test'])
    const issued = await world.authority.issue(['elsewhere.test'])
    await serveCertificate(world.db, world.vault, 'mixed.test', { ...issued, chain, key })
    await world.secure('mixed', 'after.mixed.test')
    expect(await refusal('mixed.test')).toBe('ERR_SSL_TLSV1_UNRECOGNIZED_NAME')
  })
})

test('while PostgreSQL is away everything known is served, and a certificate that was missed comes when it is back', async () => {
  await world.site('away', { 'index.html': 'away' })
  await world.secure('away', 'away.test')
  const name = new URL(world.databaseUrl).pathname.slice(1)
  const admin = new pg.Client({ connectionString: postgresUrl() })
  await admin.connect()
  const issued = await world.authority.issue(['away.test'])
  await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
  await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, [name])
  expect((await world.fetch('away.test', '/')).text).toBe('away')
  await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`)
  await until(() => serveCertificate(world.db, world.vault, 'away.test', issued).catch(() => null))
  await shows('away.test', issued)
  await admin.end()
})
