import pg from 'pg'
import { expect, test } from 'vitest'
import { migrate } from '../prisma/migrate.ts'
import { schemaSql } from '../prisma/schema-sql.ts'
import { createDatabase, postgresUrl } from './helpers/database.ts'
import { until } from './helpers/until.ts'

async function query<T extends pg.QueryResultRow>(url: string, sql: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<T>(sql)
  await client.end()
  return rows
}

/** The tables of single months look as that of all events. */
const isWhole = (name: string) => `${name} NOT IN (SELECT relname FROM pg_class WHERE relispartition)`
const columns = `SELECT table_name || '.' || column_name || ' ' || udt_name || ' ' || is_nullable || ' '
    || coalesce(column_default, '-') AS line
  FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> '_prisma_migrations'
    AND table_name NOT IN (SELECT table_name FROM information_schema.views) AND ${isWhole('table_name')} ORDER BY 1`
const indexes = `SELECT replace(indexdef, ' ON ONLY ', ' ON ') AS line FROM pg_indexes WHERE schemaname = 'public'
  AND tablename <> '_prisma_migrations' AND ${isWhole('tablename')} ORDER BY 1`
const constraints = `SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) AS line
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
    AND conrelid::regclass::text <> '_prisma_migrations' AND ${isWhole('conrelid::regclass::text')} ORDER BY 1`

/** Relations whose rows outlive what they belong to; triggers refuse new ones that belong to nothing. */
const withoutForeignKey = / (dns_record_domain_id_fkey|zone_signature_key_id_fkey) /

test('the migrations make what schema.prisma describes, and only the indexes beyond it that are known', async () => {
  const migrated = await createDatabase()
  const described = new URL(postgresUrl())
  await query(described.href, 'CREATE DATABASE described')
  described.pathname = '/described'
  // The functions of the migrations that defaults call.
  for (const name of ['event_xid', 'event_number']) {
    await query(described.href, `CREATE FUNCTION ${name}() RETURNS xid8 LANGUAGE sql AS 'SELECT pg_current_xact_id()'`)
  }
  await query(described.href, await schemaSql(described.href))
  const both = async (sql: string) => [
    (await query<{ line: string }>(migrated.url, sql)).map((row) => row.line),
    (await query<{ line: string }>(described.href, sql)).map((row) => row.line),
  ]
  for (const sql of [columns, constraints]) {
    const [made, wanted] = await both(sql)
    expect(made).toEqual(wanted!.filter((line) => !withoutForeignKey.test(line)))
  }
  const [made, wanted] = await both(indexes)
  const extra = made!.filter((line) => !wanted!.includes(line)).map((line) => / INDEX (\S+)/.exec(line)![1])
  expect(wanted!.filter((line) => !made!.includes(line))).toEqual([])
  expect(extra.sort()).toEqual([
    'branch_closed',
    'delivery_requested',
    'delivery_retry',
    'delivery_waiting',
    'deployment_commit',
    'dns_record_dname',
    'dns_record_duplicate',
    'dns_record_mx',
    'domain_awaiting_ds',
    'domain_verified_name',
    'event_project',
    'job_build',
    'job_failed',
    'job_key',
    'job_waiting',
    'label_production',
    'log_line_run',
    'log_line_run_at',
    'mail_waiting',
    'production_now',
    'production_switching',
    'source_file_missing',
    'takedown_ended',
    'takedown_host',
    'takedown_names',
    'takedown_project',
    'takedown_standing',
    'ticket_words',
    'token_ended',
    'token_live',
    'zone_signature_renew_at_idx',
  ])
  await migrated.drop()
})

test('a migration that was changed after it was applied is refused', async () => {
  const database = await createDatabase()
  await query(database.url, `UPDATE _prisma_migrations SET checksum = 'other'`)
  await expect(migrate(database.url)).rejects.toThrow(/was changed after it was applied/)
  await database.drop()
})

test('a connection that is lost while a migration waits fails it in words, and does not end the process', async () => {
  const { url, drop } = await createDatabase()
  const other = new pg.Client({ connectionString: url })
  await other.connect()
  // What a server holds that migrates.
  await other.query('SELECT pg_advisory_lock(7262735411)')
  const failed = expect(migrate(url)).rejects.toThrow(/connection|terminat/i)
  const waiting = `SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'idle' AND query LIKE 'SELECT pg_try_advisory_lock%'`
  await until(async () => (await other.query<{ ended: boolean }>(waiting)).rows[0]?.ended)
  await failed
  await other.end()
  await drop()
})
