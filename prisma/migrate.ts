// Applies the migrations of this folder in order, once each, under a lock, and records them in Prisma's own table.
import { createHash, randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { root } from '../src/platform/installation.ts'

const folder = join(root, 'prisma/migrations')
const functionFolder = join(root, 'prisma/functions')
const functionPrefix = 'functions/'

// An arbitrary lock number: only one server migrates at a time, however many start together.
const lockId = 7_262_735_411

// A server that accepts connections but doesn't respond counts as down.
const connectMs = 5_000
const lockPollMs = 100

export type Migration = { name: string; checksum: string; sql: string }

/** Returns the names of the applied migrations; `before` stops at a name, for upgrade tests. */
export async function migrate(url: string, before?: string): Promise<string[]> {
  return withClient(url, async (client) => {
    await lockMigrations(client)
    await createMigrationTable(client)
    const { migrations, functions } = await readMissing(client)
    const pending = before === undefined ? migrations : migrations.filter(({ name }) => name < before)
    for (const migration of pending) {
      if (isConcurrent(migration)) {
        await buildIndexes(client, migration)
        await recordApplied(client, migration)
      } else {
        await client.query('BEGIN')
        try {
          await applyMigration(client, migration)
          await client.query('COMMIT')
        } catch (error) {
          // Fails with a lost connection, which is the cause then.
          await client.query('ROLLBACK').catch(() => {})
          throw error
        }
      }
      applied.push(name)
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

/** The names of pending migrations. The database may also have migrations of a newer version. */
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
  // A connection lost between queries fails the next one; without a listener it would crash the process.
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
 * Holds the lock until the connection closes. It polls, because a statement that waits for the lock would be a
 * transaction that blocks index builds.
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

/** Whether the migration only builds indexes without locking their tables. */
function isConcurrent({ sql }: Migration): boolean {
  return sql.includes('CREATE INDEX CONCURRENTLY')
}

/** Runs without a transaction: after an interruption, only incomplete indexes are rebuilt. */
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

/** Runs in the caller's transaction. */
export async function applyMigration(client: pg.ClientBase, migration: Migration): Promise<void> {
  const { name, sql } = migration
  try {
    await client.query(isConcurrent(migration) ? sql.replaceAll('INDEX CONCURRENTLY', 'INDEX') : sql)
  } catch (error) {
    throw new Error(`Migration ${name} failed: ${(error as Error).message}`, { cause: error })
  }
  await recordApplied(client, migration)
}

/** Records a migration as applied. */
async function recordApplied(client: pg.ClientBase, { name, checksum }: Migration): Promise<void> {
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
