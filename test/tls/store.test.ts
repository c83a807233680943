import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createSecureContext, createServer } from 'node:tls'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { closeDatabase, type Database, openDatabase } from '../../src/platform/database/database.ts'
import { listen, type Notifications } from '../../src/platform/database/notifications.ts'
import { createVault } from '../../src/platform/secrets/secrets.ts'
import type { ServedCertificateRow } from '../../src/services/certificates/served-certificates.ts'
import { createCertificateStore } from '../../src/tls/store.ts'
import { CertificateTable } from '../../src/tls/table.ts'
import { createDatabase } from '../helpers/database.ts'
import { createAuthority, storeCertificate } from './authority.ts'

const log = pino({ level: 'silent' })
const vault = createVault(Buffer.alloc(32, 1))
let database: Awaited<ReturnType<typeof createDatabase>>
let db: Database
let notifications: Notifications
beforeAll(async () => {
  database = await createDatabase()
  db = openDatabase(database.url, 4)
  notifications = await listen(database.url, log)
})
afterAll(async () => {
  await notifications.close()
  await closeDatabase(db)
  await database.drop()
})

test('more names than contexts are kept are all served, even when their handshakes cross', async () => {
  const authority = await createAuthority()
  const names = ['one.test', 'two.test', 'three.test', 'four.test']
  for (const name of names) await storeCertificate(db, vault, await authority.issue([name]))
  const certificates = await createCertificateStore({ db, notifications, vault, log, maxContexts: 2 })
  const server = createServer({
    SNICallback: (name, callback) => callback(null, certificates.contextOf(name) ?? undefined),
  })
  server.on('secureConnection', (socket) => socket.on('error', () => {}))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const secureContext = createSecureContext({ ca: authority.rootPem })
  const visit = async (servername: string) => {
    const socket = connect({ port, host: '127.0.0.1', servername, secureContext })
    await once(socket, 'secureConnect')
    const shown = socket.getPeerCertificate().subjectaltname
    socket.destroy()
    return [servername, shown]
  }
  const visits = await Promise.all(Array.from({ length: 24 }, (_, i) => visit(names[i % names.length]!)))
  for (const [name, shown] of visits) expect(shown).toBe(`DNS:${name}`)
  server.close()
  await certificates.close()
})

const row = (name: string, names: string[], more: Partial<ServedCertificateRow> = {}): ServedCertificateRow => ({
  name,
  names,
  platform: false,
  id: `crt_${name}`,
  chain: '',
  key: new Uint8Array(),
  notAfter: new Date(),
  ...more,
})

test('ten thousand names are compared with the database by their ids alone', () => {
  const table = new CertificateTable()
  const rows = Array.from({ length: 10_000 }, (_, i) => row(`d${i}.test`, [`d${i}.test`]))
  table.apply(
    rows.map(({ name }) => name),
    rows,
  )
  expect(table.size).toBe(10_000)
  expect(table.differing(rows).size).toBe(0)
  const next = rows.slice(1)
  next[0] = { ...next[0]!, id: 'crt_renewed' }
  next.push(row('new.test', ['new.test']))
  expect(table.differing(next)).toEqual(new Set(['d0.test', 'd1.test', 'new.test']))
})

test('a platform certificate takes all its names along when it is replaced or goes', () => {
  const table = new CertificateTable()
  table.apply(['a.test'], [row('a.test', ['a.test', '*.a.test', 'b.test'], { platform: true, id: 'crt_1' })])
  expect(table.find('x.a.test')?.id).toBe('crt_1')
  expect(table.find('b.test')?.id).toBe('crt_1')
  table.apply(['a.test'], [row('a.test', ['a.test', '*.a.test'], { platform: true, id: 'crt_2' })])
  expect(table.find('x.a.test')?.id).toBe('crt_2')
  expect(table.find('b.test')).toBeUndefined()
  table.apply(['a.test'], [])
  expect(table.find('a.test')).toBeUndefined()
  expect(table.size).toBe(0)
})

test('a start without the database is an error, and not an edge without certificates', async () => {
  const away = openDatabase('postgres://127.0.0.1:1/none', 2)
  await expect(createCertificateStore({ db: away, notifications, vault, log })).rejects.toThrow()
  await closeDatabase(away)
})
