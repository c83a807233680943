import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { closeDatabase, type Database, openDatabase } from '../../src/platform/database/database.ts'
import { createVault, keyIdOf, placeOf } from '../../src/platform/secrets/secrets.ts'
import { admitKey } from '../../src/services/secrets/sealing-keys.ts'
import { createDatabase } from '../helpers/database.ts'

const [old, present, lost] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer]
const directory = 'https://authority.test'
const place = placeOf.acmeAccount(directory)
let database: Awaited<ReturnType<typeof createDatabase>>
let db: Database
let dataDir: string
beforeAll(async () => {
  database = await createDatabase()
  db = openDatabase(database.url, 2)
  dataDir = await mkdtemp(join(tmpdir(), 'berth-secrets-'))
})
afterAll(async () => {
  await closeDatabase(db)
  await database.drop()
  await rm(dataDir, { recursive: true, force: true })
})

async function berth(args: string[], key: Buffer, olds: Buffer[] = []) {
  const child = spawn(process.execPath, ['dist/src/cli.js', ...args], {
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: database.url,
      DATA_DIR: dataDir,
      SECRETS_KEY: key.toString('base64'),
      SECRETS_KEY_OLD: olds.map((one) => one.toString('base64')).join(','),
    },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const status = await new Promise((resolve) => child.once('close', resolve))
  return { status, output }
}

test('a key is replaced by the command, which fails while something is sealed with a key that it lacks', async () => {
  await admitKey(db, createVault(old))
  const seal = (key: Buffer) => Uint8Array.from(createVault(key).seal('account key', place))
  await db.acmeAccount.create({ data: { directory, url: '', key: seal(lost) } })

  const left = await berth(['secrets', 'rotate'], present, [old])
  expect(left.status).toBe(1)
  expect(left.output).toContain(`acme_account.key         cannot be opened: ${directory}`)
  expect(left.output).toMatch(/1 secrets cannot be opened.*Keep SECRETS_KEY_OLD/)

  await db.acmeAccount.update({ where: { directory }, data: { key: seal(old) } })
  const done = await berth(['secrets', 'rotate'], present, [old])
  expect(done).toMatchObject({ status: 0 })
  expect(done.output).toContain(`Re-sealed 1 secrets with ${keyIdOf(present)}.`)
  expect(done.output).toContain(`you can remove SECRETS_KEY_OLD (${keyIdOf(old)}).`)
  const { key } = await db.acmeAccount.findUniqueOrThrow({ where: { directory } })
  expect(createVault(present).open(key, place).toString()).toBe('account key')

  // Nobody starts with a key that opens nothing.
  const refused = await berth(['serve'], lost)
  expect(refused.status).toBe(1)
  expect(refused.output).toMatch(
    /^berth: SECRETS_KEY \(\w{16}\) is not the key of this database, .+SECRETS_KEY_OLD\.\n$/,
  )
})
