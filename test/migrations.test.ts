import pg from 'pg'
import { describe, expect, test } from 'vitest'
import {
  applyFunctions,
  migrate,
  missingMigrations,
  objectsOf,
  readFunctionFiles,
  readMigrationFiles,
  readObjects,
} from '../prisma/migrate.ts'
import { schemaSql } from '../prisma/schema-sql.ts'
import { createDatabase, postgresUrl } from './helpers/database.ts'
import { until } from './helpers/until.ts'

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}

async function query<T extends pg.QueryResultRow>(url: string, sql: string): Promise<T[]> {
  const client = await connect(url)
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
  const other = await connect(url)
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

describe('functions and triggers', () => {
  const definitions = `SELECT pg_get_functiondef(oid) AS line FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT tgenabled::text || pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1`
  const functions = `migration_name LIKE 'functions/%'`

  async function withDatabase(work: (url: string) => Promise<void>): Promise<void> {
    const { url, drop } = await createDatabase()
    await work(url)
    await drop()
  }

  test('of a migrated database are those of prisma/functions, so that none lives in a migration alone', () =>
    withDatabase(async (url) => {
      const described = (await readFunctionFiles()).flatMap(({ sql }) => objectsOf(sql))
      const client = await connect(url)
      expect((await readObjects(client)).sort()).toEqual(described.sort())
      await client.end()
    }))

  test('are created by no migration from now on', async () => {
    const later = (await readMigrationFiles()).filter(({ name }) => name > '20261130040000_revoked_tokens_at_once')
    const creating = later.filter(({ sql }) =>
      /CREATE\s+(OR\s+REPLACE\s+)?(CONSTRAINT\s+)?(FUNCTION|TRIGGER)/i.test(sql),
    )
    expect(creating.map(({ name }) => name)).toEqual([])
  })

  test('may be applied again, which changes nothing', () =>
    withDatabase(async (url) => {
      expect(await migrate(url)).toEqual([])
      const before = await query(url, definitions)
      await query(url, `DELETE FROM _prisma_migrations WHERE ${functions}`)
      expect(await missingMigrations(url)).toEqual((await readFunctionFiles()).map(({ name }) => name))
      expect(await migrate(url)).toEqual((await readFunctionFiles()).map(({ name }) => name))
      expect(await query(url, definitions)).toEqual(before)
      expect(await missingMigrations(url)).toEqual([])
    }))

  test('are applied when their file changed, and when a migration dropped one of them', () =>
    withDatabase(async (url) => {
      const before = await query(url, definitions)
      await query(
        url,
        `CREATE OR REPLACE FUNCTION event_mail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        UPDATE _prisma_migrations SET checksum = 'earlier' WHERE migration_name = 'functions/mail'`,
      )
      expect(await missingMigrations(url)).toEqual(['functions/mail'])
      expect(await migrate(url)).toEqual(['functions/mail'])
      const client = await connect(url)
      await client.query('DROP TRIGGER job_notify ON job; DROP FUNCTION zone_notify CASCADE')
      expect(await applyFunctions(client)).toEqual(['functions/jobs', 'functions/zones'])
      await client.end()
      expect(await query(url, definitions)).toEqual(before)
    }))

  test('of a newer version stay, and a server of the version before is ready with them', () =>
    withDatabase(async (url) => {
      const row = (name: string, checksum: string) =>
        query(
          url,
          `INSERT INTO _prisma_migrations (id, migration_name, checksum, finished_at)
           VALUES (md5('${name} ${checksum}'), '${name}', '${checksum}', now())`,
        )
      // Newer by its functions alone: whoever waits for the schema has all it needs.
      await row('functions/mail', 'newer')
      expect(await missingMigrations(url)).toEqual([])
      await row('29991231000000_later', '')
      await query(url, `DELETE FROM _prisma_migrations WHERE ${functions}`)
      expect(await missingMigrations(url)).toEqual([])
      expect(await migrate(url)).toEqual([])
    }))

  test('begin again when their locks and those of a writer wait for each other', () =>
    withDatabase(async (url) => {
      await query(url, `DELETE FROM _prisma_migrations WHERE ${functions}`)
      const [writer, pause] = [await connect(url), await connect(url)]
      // So that PostgreSQL ends the transaction of the migrator.
      await writer.query(`SET deadlock_timeout = '1h'; BEGIN; LOCK zone_key IN ROW EXCLUSIVE MODE`)
      await pause.query('BEGIN; LOCK dns_record IN ROW EXCLUSIVE MODE')
      const waiting = (table: string) => async () =>
        (await query(url, `SELECT FROM pg_locks WHERE NOT granted AND relation = '${table}'::regclass`)).length > 0
      const migrated = migrate(url)
      await until(waiting('dns_record'))
      const written = writer.query('LOCK deployment IN ROW EXCLUSIVE MODE')
      await until(waiting('deployment'))
      await pause.query('COMMIT')
      await written
      await writer.query('COMMIT')
      expect(await migrated).toHaveLength((await readFunctionFiles()).length)
      await Promise.all([writer.end(), pause.end()])
    }))
})
