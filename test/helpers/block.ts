// Blocks some database requests, so that a test can observe what happens meanwhile.
import pg from 'pg'
import type { TestApi } from './api.ts'

/** Blocks every request that uses the table; the returned function releases them. */
export const blockTable = (api: TestApi, table: string) => block(api, `LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)

/** Blocks changes to tokens or members of the account; the returned function releases them. */
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
