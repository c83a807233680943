import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createSchema } from '../../src/roles/opening/schema.ts'
import { postgresUrl } from '../helpers/database.ts'

test('a server that applies migrations says how many and how long it took, and is silent if there are none', async () => {
  const admin = new pg.Client(postgresUrl())
  await admin.connect()
  const name = `t_${randomBytes(8).toString('hex')}`
  await admin.query(`CREATE DATABASE ${name}`)
  const url = new URL(postgresUrl())
  url.pathname = `/${name}`
  const lines: { msg: string; migrations: number; durationMs: number }[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const { signal } = new AbortController()
  try {
    await createSchema(url.href, { migrates: true, log, signal }).prepare()
    const migrated = new pg.Client(url.href)
    await migrated.connect()
    const { rows } = await migrated.query('SELECT count(*)::int AS applied FROM _prisma_migrations')
    await migrated.end()
    expect(lines).toMatchObject([{ migrations: rows[0].applied, durationMs: expect.any(Number) }])
    expect(lines[0]!.msg).toBe(`applied ${rows[0].applied} migrations to the database`)
    await createSchema(url.href, { migrates: true, log, signal }).prepare()
    expect(lines).toHaveLength(1)
  } finally {
    await admin.query(`DROP DATABASE ${name} WITH (FORCE)`)
    await admin.end()
  }
})
