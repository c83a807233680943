// Applies the migrations of this folder in order, once each, under a lock; keeps Prisma's own table of what was applied.
import { createHash, randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'

// Compiled code runs from dist/prisma; the SQL stays where it was written.
const folder = join(import.meta.dirname.replace(/[/\\]dist[/\\]prisma$/, '/prisma'), 'migrations')

// Any number that no other program locks: one migration at a time, however many servers start together.
const lockId = 7_262_735_411

export type Migration = { name: string; checksum: string; sql: string }

/** Returns the names of the migrations that were applied now. */
export async function migrate(url: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await lockMigrations(client)
    await createMigrationTable(client)
    const known = await client.query<{ name: string; checksum: string }>(
      'SELECT migration_name AS name, checksum FROM _prisma_migrations WHERE finished_at IS NOT NULL',
    )
    const checksums = new Map(known.rows.map((row) => [row.name, row.checksum]))
    const applied: string[] = []
    for (const migration of await readMigrationFiles()) {
      const { name, checksum } = migration
      const before = checksums.get(name)
      if (before === checksum) continue
      if (before !== undefined) throw new Error(`Migration ${name} was changed after it was applied to this database.`)
      await client.query('BEGIN')
      try {
        await applyMigration(client, migration)
        await client.query('COMMIT')
      } catch (error) {
        await client.query('ROLLBACK')
        throw error
      }
      applied.push(name)
    }
    return applied
  } finally {
    await client.end()
  }
}

/** Until the connection ends; whoever else wants to migrate waits. */
export async function lockMigrations(client: pg.ClientBase): Promise<void> {
  await client.query('SELECT pg_advisory_lock($1)', [lockId])
}

export async function createMigrationTable(client: pg.ClientBase): Promise<void> {
  await client.query(`CREATE TABLE IF NOT EXISTS "_prisma_migrations" (
    "id" varchar(36) PRIMARY KEY, "checksum" varchar(64) NOT NULL, "finished_at" timestamptz,
    "migration_name" varchar(255) NOT NULL, "logs" text, "rolled_back_at" timestamptz,
    "started_at" timestamptz NOT NULL DEFAULT now(), "applied_steps_count" integer NOT NULL DEFAULT 0)`)
}

/** Within the transaction of the caller. */
export async function applyMigration(client: pg.ClientBase, { name, checksum, sql }: Migration): Promise<void> {
  try {
    await client.query(sql)
    await client.query(
      `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count)
       VALUES ($1, $2, $3, now(), 1)`,
      [randomUUID(), checksum, name],
    )
  } catch (error) {
    throw new Error(`Migration ${name} failed: ${(error as Error).message}`, { cause: error })
  }
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
