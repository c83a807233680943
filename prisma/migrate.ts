// Applies the migrations of this folder in order, once each, under a lock; keeps Prisma's own table of what was applied.
import { createHash, randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { root } from '../src/platform/installation.ts'

const folder = join(root, 'prisma/migrations')

// Any number that no other program locks: one migration at a time, however many servers start together.
const lockId = 7_262_735_411

// A server that accepts connections and says nothing is as good as away.
const connectMs = 5_000
const lockPollMs = 100

export type Migration = { name: string; checksum: string; sql: string }

/** Returns the names of the migrations that were applied now; `before` stops at a name, for tests of upgrades. */
export async function migrate(url: string, before?: string): Promise<string[]> {
  return withClient(url, async (client) => {
    await lockMigrations(client)
    await createMigrationTable(client)
    const applied: string[] = []
    for (const migration of await readMissing(client)) {
      const { name } = migration
      if (before !== undefined && name >= before) break
      if (isConcurrent(migration)) {
        await buildIndexes(client, migration)
        await note(client, migration)
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
    return applied
  })
}

const undefinedTable = '42P01'

/** Names of the migrations that are still to be applied. Those of a newer version may be there too. */
export async function missingMigrations(url: string): Promise<string[]> {
  return withClient(url, async (client) => {
    const missing = await readMissing(client).catch((error) => {
      if (error.code !== undefinedTable) throw error
      return readMigrationFiles()
    })
    return missing.map(({ name }) => name)
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

/** In the order in which they are applied. */
async function readMissing(client: pg.Client): Promise<Migration[]> {
  const { rows } = await client.query<{ name: string; checksum: string }>(
    'SELECT migration_name AS name, checksum FROM _prisma_migrations WHERE finished_at IS NOT NULL',
  )
  const applied = new Map(rows.map((row) => [row.name, row.checksum]))
  const all = await readMigrationFiles()
  const changed = all.find(({ name, checksum }) => (applied.get(name) ?? checksum) !== checksum)
  if (changed) throw new Error(`Migration ${changed.name} was changed after it was applied to this database.`)
  return all.filter(({ name }) => !applied.has(name))
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
  const names = await migrationNames()
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(join(folder, name, 'migration.sql'), 'utf8')
      return { name, checksum: createHash('sha256').update(sql).digest('hex'), sql }
    }),
  )
}

async function migrationNames(): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()
}
