// A database that holds up some requests, so that a test can look at what happens meanwhile.
import pg from 'pg'
import type { TestApi } from './api.ts'

/** Holds up every request that uses the table, until it is called. */
export const blockTable = (api: TestApi, table: string) => block(api, `LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)

/** Holds up what changes tokens or members of the account, until it is called. */
export const blockAccount = (api: TestApi, id: string) =>
  block(api, `SELECT FROM account WHERE id = '${id}' FOR UPDATE`)

async function block(api: TestApi, statement: string): Promise<() => Promise<void>> {
  const client = new pg.Client(api.databaseUrl)
  await client.connect()
  await client.query(`BEGIN; ${statement}`)
  return async () => {
    await client.query('ROLLBACK')
    await client.end()
  }
}

export const blockProjects = (api: TestApi) => blockTable(api, 'project')
