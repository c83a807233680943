import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { migrate } from '../prisma/migrate.ts'
import { schemaSql } from '../prisma/schema-sql.ts'
import { createDatabase } from './helpers/database.ts'

async function query<T extends pg.QueryResultRow>(url: string, sql: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<T>(sql)
  await client.end()
  return rows
}

const columns = `SELECT table_name || '.' || column_name || ' ' || udt_name || ' ' || is_nullable || ' '
    || coalesce(column_default, '-') AS line
  FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> '_prisma_migrations'
    AND table_name NOT IN (SELECT table_name FROM information_schema.views) ORDER BY 1`
const indexes = `SELECT indexdef AS line FROM pg_indexes WHERE schemaname = 'public'
  AND tablename <> '_prisma_migrations' ORDER BY 1`
const constraints = `SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) AS line
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
    AND conrelid::regclass::text <> '_prisma_migrations' ORDER BY 1`

test('the migrations make what schema.prisma describes, and only the indexes beyond it that are known', async () => {
  const migrated = await createDatabase()
  const described = new URL(inject('postgresUrl'))
  await query(described.href, 'CREATE DATABASE described')
  described.pathname = '/described'
  await query(described.href, await schemaSql(described.href))
  const both = async (sql: string) => [
    (await query<{ line: string }>(migrated.url, sql)).map((row) => row.line),
    (await query<{ line: string }>(described.href, sql)).map((row) => row.line),
  ]
  for (const sql of [columns, constraints]) {
    const [made, wanted] = await both(sql)
    expect(made).toEqual(wanted)
  }
  const [made, wanted] = await both(indexes)
  const extra = made!.filter((line) => !wanted!.includes(line)).map((line) => / INDEX (\S+)/.exec(line)![1])
  expect(wanted!.filter((line) => !made!.includes(line))).toEqual([])
  expect(extra.sort()).toEqual([
    'delivery_requested',
    'delivery_retry',
    'delivery_waiting',
    'dns_record_duplicate',
    'domain_verified_name',
    'job_build',
    'job_key',
    'job_waiting',
    'label_production',
    'takedown_host',
    'takedown_names',
    'takedown_project',
  ])
  await migrated.drop()
})

test('ten servers that start together apply each migration once', async () => {
  const admin = new URL(inject('postgresUrl'))
  await query(admin.href, 'CREATE DATABASE together')
  admin.pathname = '/together'
  const applied = await Promise.all(Array.from({ length: 10 }, () => migrate(admin.href)))
  expect(applied.filter((names) => names.length > 0)).toHaveLength(1)
})

test('a migration that was changed after it was applied is refused', async () => {
  const database = await createDatabase()
  await query(database.url, `UPDATE _prisma_migrations SET checksum = 'other'`)
  await expect(migrate(database.url)).rejects.toThrow(/was changed after it was applied/)
  await database.drop()
})
