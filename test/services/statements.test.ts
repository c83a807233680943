// Every statement is prepared on the migrated database, and what PostgreSQL says of it is what it declares.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statements } from '../../src/platform/database/statement.ts'
import { createDatabase } from '../helpers/database.ts'

const source = join(import.meta.dirname, '../../src')
const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) =>
  /(^|\/)([a-z-]+-)?statements\.ts$/.test(file),
)
for (const file of files) await import(join(source, file))

type Described = { parameters: number[]; columns: { name: string; type: number }[] }

let database: Awaited<ReturnType<typeof createDatabase>>
let client: pg.Client
const typeNames = new Map<number, string>()

beforeAll(async () => {
  database = await createDatabase()
  client = new pg.Client(database.url)
  await client.connect()
  const { rows } = await client.query<{ oid: number; name: string }>(
    'SELECT oid::int, format_type(oid, NULL) AS name FROM pg_type',
  )
  for (const { oid, name } of rows) typeNames.set(oid, name)
})

afterAll(async () => {
  await client?.end()
  await database?.drop()
})

/** Parses a statement without running it. */
function describeText(text: string): Promise<Described> {
  return new Promise((resolve, reject) => {
    const described: Described = { parameters: [], columns: [] }
    const connection = (client as unknown as { connection: Connection }).connection
    const heard = (message: { dataTypeIDs: number[] }) => {
      described.parameters = message.dataTypeIDs
    }
    connection.on('parameterDescription', heard)
    const done = (settle: () => void) => {
      connection.off('parameterDescription', heard)
      settle()
    }
    client.query({
      submit(connection: Connection) {
        connection.parse({ text, name: '', types: [] })
        connection.describe({ type: 'S', name: '' })
        connection.sync()
      },
      handleRowDescription({ fields }: { fields: { name: string; dataTypeID: number }[] }) {
        described.columns = fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID }))
      },
      handleError: (error: Error) => done(() => reject(error)),
      handleReadyForQuery: () => done(() => resolve(described)),
      handleDataRow() {},
      handleCommandComplete() {},
      handleEmptyQuery() {},
    } as unknown as pg.Submittable)
  })
}

type Connection = NodeJS.EventEmitter & {
  parse(message: { text: string; name: string; types: number[] }): void
  describe(message: { type: 'S'; name: string }): void
  sync(): void
}

describe('the statement', () => {
  test.each([...statements.values()])('$name is what it declares', async (definition) => {
    const { parameters, columns } = await describeText(definition.text)
    const given = Object.entries(definition.in).map(([name, type]) => `${name}: ${type.name}`)
    const names = Object.keys(definition.in)
    expect(parameters.map((oid, index) => `${names[index]}: ${typeNames.get(oid)}`)).toEqual(given)
    const returned = Object.entries(definition.out).map(([name, type]) => `${name}: ${type.name}`)
    expect(columns.map(({ name, type }) => `${name}: ${typeNames.get(type)}`)).toEqual(returned)
  })
})
