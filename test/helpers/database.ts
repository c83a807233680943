// A fresh database for a test file, copied from the migrated template.
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import type { Database } from '../../src/platform/database/database.ts'
import { templateName } from './postgres.ts'

/** The PostgreSQL of this process. */
export function postgresUrl(): string {
  const urls = inject('postgresUrls')
  return urls[Number(process.env.VITEST_POOL_ID) % urls.length]!
}

export type TestDatabase = { url: string; drop(): Promise<void> }

export async function createDatabase(): Promise<TestDatabase> {
  const admin = postgresUrl()
  const name = `t_${randomBytes(8).toString('hex')}`
  await run(admin, async (client) => {
    // Concurrent copies fail, so a lock serializes them.
    await client.query('SELECT pg_advisory_lock(1)')
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${templateName}`)
  })
  const url = new URL(admin)
  url.pathname = `/${name}`
  return {
    url: url.href,
    drop: () => run(admin, async (client) => void (await client.query(`DROP DATABASE ${name} WITH (FORCE)`))),
  }
}

/** Records the contents of a database; the returned function deletes everything added later. Sequences aren't reset. */
export async function rememberRows(url: string): Promise<() => Promise<void>> {
  const tables: string[] = []
  const kept: [table: string, rows: string][] = []
  await run(url, async (client) => {
    const found = await client.query(
      "SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> '_prisma_migrations'",
    )
    for (const { name } of found.rows) {
      tables.push(name)
      const { rows } = await client.query(`SELECT json_agg(t)::text AS rows FROM ${name} t`)
      if (rows[0].rows) kept.push([name, rows[0].rows])
    }
  })
  return () =>
    run(url, async (client) => {
      // Without triggers, which refuse to delete events, and without foreign key checks per row.
      await client.query('SET session_replication_role = replica')
      await client.query('BEGIN')
      await client.query(tables.map((table) => `DELETE FROM ${table};`).join('\n'))
      for (const [table, rows] of kept)
        await client.query(`INSERT INTO ${table} SELECT * FROM json_populate_recordset(NULL::${table}, $1)`, [rows])
      await client.query('COMMIT')
    })
}

/** Whether anything in this database waits for a lock. */
export async function waitsForLock(db: Database): Promise<boolean> {
  const waiting = await db.$queryRaw<unknown[]>`
    SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  return waiting.length > 0
}

async function run(url: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}
