// Applies the migrations of this folder in order, once each, then the files of functions that changed, under a lock. Keeps
// Prisma's own table of what was applied, in which a file of functions has a row for each of its texts.
import { createHash, randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { root } from '../src/platform/installation.ts'

const folder = join(root, 'prisma/migrations')
const functionFolder = join(root, 'prisma/functions')
const functionPrefix = 'functions/'

// Any number that no other program locks: one migration at a time, however many servers start together.
const lockId = 7_262_735_411

// A server that accepts connections and says nothing is as good as away.
const connectMs = 5_000
const lockPollMs = 100

export type Migration = { name: string; checksum: string; sql: string }

/**
 * Returns the names of the migrations and files of functions that were applied now; `before` stops at a name, for tests
 * of upgrades.
 */
export async function migrate(url: string, before?: string): Promise<string[]> {
  return withClient(url, async (client) => {
    await lockMigrations(client)
    await createMigrationTable(client)
    const { migrations, functions } = await readMissing(client)
    const pending = before === undefined ? migrations : migrations.filter(({ name }) => name < before)
    for (const migration of pending) {
      if (isConcurrent(migration)) {
        await buildIndexes(client, migration)
        await note(client, migration)
      } else await transact(client, () => applyMigration(client, migration))
    }
    const applied = pending.map(({ name }) => name)
    if (before !== undefined || (pending.length === 0 && functions.length === 0)) return applied
    return [...applied, ...(await transact(client, () => applyFunctions(client)))]
  })
}

const deadlockDetected = '40P01'

/** Triggers lock tables that others write to meanwhile, in another order. Whoever loses begins again. */
async function transact<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  for (;;) {
    await client.query('BEGIN')
    try {
      const result = await work()
      await client.query('COMMIT')
      return result
    } catch (error) {
      // Fails with a lost connection, which is the cause then.
      await client.query('ROLLBACK').catch(() => {})
      if (((error as Error).cause as { code?: string } | undefined)?.code !== deadlockDetected) throw error
    }
  }
}

const undefinedTable = '42P01'

/**
 * Names of what is still to be applied. Migrations of a newer version may be there too, and any text of a function that
 * was applied once is fine: only a newer version can have replaced it.
 */
export async function missingMigrations(url: string): Promise<string[]> {
  return withClient(url, async (client) => {
    const missing = await readMissing(client).catch(async (error) => {
      if (error.code !== undefinedTable) throw error
      return { migrations: await readMigrationFiles(), functions: await readFunctionFiles(), known: new Set<string>() }
    })
    const functions = missing.functions.filter((file) => !missing.known.has(versionOf(file)))
    return [...missing.migrations, ...functions].map(({ name }) => name)
  })
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: connectMs })
  // A connection that is lost between two queries fails the next one; without a listener it would end the process.
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

const versionOf = ({ name, checksum }: { name: string; checksum: string }) => `${name} ${checksum}`

/** In the order in which they are applied; `known` are the versions of what was ever applied. */
async function readMissing(client: pg.ClientBase) {
  const { rows } = await client.query<{ name: string; checksum: string }>(
    'SELECT migration_name AS name, checksum FROM _prisma_migrations WHERE finished_at IS NOT NULL ORDER BY finished_at',
  )
  const applied = new Map(rows.map((row) => [row.name, row.checksum]))
  const all = await readMigrationFiles()
  const changed = all.find(({ name, checksum }) => (applied.get(name) ?? checksum) !== checksum)
  if (changed) throw new Error(`Migration ${changed.name} was changed after it was applied to this database.`)
  const migrations = all.filter(({ name }) => !applied.has(name))
  // Where a newer version has been, its functions stay.
  const newest = all.at(-1)!.name
  const isNewer = rows.some(({ name }) => !name.startsWith(functionPrefix) && name > newest)
  const files = isNewer ? [] : await readFunctionFiles()
  const functions = files.filter(({ name, checksum }) => applied.get(name) !== checksum)
  return { migrations, functions, known: new Set(rows.map(versionOf)) }
}

/**
 * Until the connection ends; whoever else wants to migrate waits. It asks again and again: a statement that waits for
 * the lock would be a transaction that an index build waits for.
 */
export async function lockMigrations(client: pg.ClientBase): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ held: boolean }>('SELECT pg_try_advisory_lock($1) AS held', [lockId])
    if (rows[0]!.held) return
    await sleep(lockPollMs)
  }
}

export async function createMigrationTable(client: pg.ClientBase): Promise<void> {
  await client.query(`CREATE TABLE IF NOT EXISTS "_prisma_migrations" (
    "id" varchar(36) PRIMARY KEY, "checksum" varchar(64) NOT NULL, "finished_at" timestamptz,
    "migration_name" varchar(255) NOT NULL, "logs" text, "rolled_back_at" timestamptz,
    "started_at" timestamptz NOT NULL DEFAULT now(), "applied_steps_count" integer NOT NULL DEFAULT 0)`)
}

/** Whether it builds indexes without locking their tables, and does nothing else. */
function isConcurrent({ sql }: Migration): boolean {
  return sql.includes('CREATE INDEX CONCURRENTLY')
}

/** No transaction: what was interrupted is done again, except the indexes that are complete. */
async function buildIndexes(client: pg.Client, { sql }: Migration): Promise<void> {
  const names = [...sql.matchAll(/IF NOT EXISTS "(\w+)"/g)].map(([, name]) => name!)
  const { rows } = await client.query<{ name: string }>(
    `SELECT relname AS name FROM pg_index JOIN pg_class ON oid = indexrelid WHERE NOT indisvalid AND relname = ANY($1)`,
    [names],
  )
  for (const { name } of rows) await client.query(`DROP INDEX CONCURRENTLY "${name}"`)
  for (const statement of sql.split(/;\s*\n/)) {
    if (/^\s*[^\s-]/m.test(statement)) await client.query(statement)
  }
}

/** Within the transaction of the caller. */
export async function applyMigration(client: pg.ClientBase, migration: Migration): Promise<void> {
  const { name, sql } = migration
  try {
    await client.query(isConcurrent(migration) ? sql.replaceAll('INDEX CONCURRENTLY', 'INDEX') : sql)
  } catch (error) {
    throw new Error(`Migration ${name} failed: ${(error as Error).message}`, { cause: error })
  }
  await note(client, migration)
}

/**
 * Within the transaction of the caller, after all migrations: the files that changed, and those of which a migration has
 * dropped something. Returns their names.
 */
export async function applyFunctions(client: pg.ClientBase): Promise<string[]> {
  const changed = new Set((await readMissing(client)).functions.map(({ name }) => name))
  const there = new Set(await readObjects(client))
  const files = (await readFunctionFiles()).filter(
    ({ name, sql }) => changed.has(name) || objectsOf(sql).some((object) => !there.has(object)),
  )
  for (const file of files) await applyMigration(client, file)
  return files.map(({ name }) => name)
}

/** The functions and triggers that SQL creates, each by its name: triggers with their tables. */
export function objectsOf(sql: string): string[] {
  const created = /^CREATE OR REPLACE (?:(FUNCTION) (\w+)|TRIGGER (\w+)[^;]*? ON (\w+))/gm
  return [...sql.matchAll(created)].map(([, isFunction, name, trigger, table]) =>
    isFunction ? `function ${name}` : `trigger ${trigger} on ${table}`,
  )
}

/** Those of the database; but not of extensions, nor the triggers of partitions, which are those of their tables. */
export async function readObjects(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT 'function ' || p.proname AS name FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace
       AND NOT EXISTS (SELECT 1 FROM pg_depend d
         WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
     UNION ALL
     SELECT 'trigger ' || t.tgname || ' on ' || c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
     WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal AND t.tgparentid = 0`,
  )
  return rows.map(({ name }) => name)
}

/** Remembers that it is applied. */
async function note(client: pg.ClientBase, { name, checksum }: Migration): Promise<void> {
  await client.query(
    `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count)
     VALUES ($1, $2, $3, now(), 1)`,
    [randomUUID(), checksum, name],
  )
}

/** In the order in which they are applied. */
export async function readMigrationFiles(): Promise<Migration[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  return Promise.all(names.sort().map((name) => read(name, join(folder, name, 'migration.sql'))))
}

/** In the order in which they are applied: what is dropped comes last, when nothing uses it anymore. */
export async function readFunctionFiles(): Promise<Migration[]> {
  const names = (await readdir(functionFolder)).filter((name) => name.endsWith('.sql')).sort()
  const ordered = [...names.filter((name) => name !== 'dropped.sql'), 'dropped.sql']
  return Promise.all(
    ordered.map((name) => read(functionPrefix + name.slice(0, -'.sql'.length), join(functionFolder, name))),
  )
}

async function read(name: string, path: string): Promise<Migration> {
  const sql = await readFile(path, 'utf8')
  return { name, checksum: createHash('sha256').update(sql).digest('hex'), sql }
}
