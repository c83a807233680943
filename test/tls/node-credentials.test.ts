// The certificates between machines: one authority for all, sealed, and there without the database too.
import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { closeDatabase, type Database, openDatabase } from '../../src/platform/database/database.ts'
import { createVault } from '../../src/platform/secrets/secrets.ts'
import { createSnapshots } from '../../src/platform/database/snapshots.ts'
import { openNodeCredentials } from '../../src/tls/node-credentials.ts'
import { createDatabase } from '../helpers/database.ts'
import { type Link, openLink } from '../helpers/link.ts'

const log = pino({ level: 'silent' })
const vault = createVault(Buffer.alloc(32, 7))
let database: Awaited<ReturnType<typeof createDatabase>>
let link: Link
let db: Database
let directory: string
beforeAll(async () => {
  database = await createDatabase()
  link = await openLink(database.url)
  db = openDatabase(link.url, 5)
  directory = await mkdtemp(join(tmpdir(), 'berth-credentials-'))
})
afterAll(async () => {
  await closeDatabase(db)
  link.close()
  await database.drop()
  await rm(directory, { recursive: true, force: true })
})

test('processes that start together have one authority, whose key is sealed; without the database it is remembered', async () => {
  const snapshots = createSnapshots({ directory, vault, log, collectMs: 0 })
  const opened = await Promise.all(
    ['a', 'b', 'c', 'd'].map((node) =>
      openNodeCredentials({ db, vault, log, snapshots: node === 'a' ? snapshots : undefined }, 'edge', node),
    ),
  )
  expect(new Set(opened.map(({ current }) => current!.ca.join())).size).toBe(1)
  const [row, ...others] = await db.internalCa.findMany()
  expect(others).toEqual([])
  expect(Buffer.from(row!.key).toString('latin1')).not.toContain('PRIVATE KEY')
  const certificates = opened.map(({ current }) => new X509Certificate(current!.cert))
  const authority = new X509Certificate(row!.certificate)
  expect(certificates.every((one) => one.verify(authority.publicKey))).toBe(true)
  expect(certificates.map(({ subjectAltName }) => subjectAltName)).toEqual(
    ['a', 'b', 'c', 'd'].map((node) => `URI:berth://edge/${node}`),
  )
  for (const { close } of opened) await close()

  link.cut()
  const away = await openNodeCredentials({ db, vault, log, snapshots }, 'edge', 'a')
  expect(away.current!.ca).toEqual([row!.certificate])
  await away.close()
})
