// A fresh database for a test file, copied from the migrated template.
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import type { Database } from '../../src/platform/database.ts'
import { templateName } from './postgres.ts'

/** The PostgreSQL of this process. */
export function postgresUrl(): string {
  const urls = inject('postgresUrls')
  return urls[Number(process.env.VITEST_POOL_ID) % urls.length]!
}

export async function createDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const admin = postgresUrl()
  const name = `t_${randomBytes(8).toString('hex')}`
  await run(admin, async (client) => {
    // Copying fails while another copy is under way; the lock makes them take turns.
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

/** Whether somebody waits in this database for what another one has locked. */
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
