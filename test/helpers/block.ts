// A database that holds up some requests, so that a test can look at what happens meanwhile.
import pg from 'pg'
import type { TestApi } from './api.ts'

/** Holds up every request that uses the table, until it is called. */
export async function blockTable(api: TestApi, table: string): Promise<() => Promise<void>> {
  const client = new pg.Client(api.databaseUrl)
  await client.connect()
  await client.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
  return async () => {
    await client.query('ROLLBACK')
    await client.end()
  }
}

export const blockProjects = (api: TestApi) => blockTable(api, 'project')
