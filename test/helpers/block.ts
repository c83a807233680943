// A database that holds up some requests, so that a test can look at what happens meanwhile.
import pg from 'pg'
import type { TestApi } from './api.ts'

/** Holds up every request that reads projects, until it is called. */
export async function blockProjects(api: TestApi): Promise<() => Promise<void>> {
  const client = new pg.Client(api.databaseUrl)
  await client.connect()
  await client.query('BEGIN; LOCK TABLE project IN ACCESS EXCLUSIVE MODE')
  return async () => {
    await client.query('ROLLBACK')
    await client.end()
  }
}
