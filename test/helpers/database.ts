// A fresh database for a test file, copied from the migrated template.
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import { templateName } from './postgres.ts'

export async function createDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const admin = inject('postgresUrl')
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

async function run(url: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}
