// Starts one PostgreSQL for the whole run, and makes the migrated template that every test database is copied from.
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { migrate } from '../../prisma/migrate.ts'
import { startEmbeddedPostgres } from '../../src/embedded-postgres/index.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string
  }
}

export const templateName = 'berth_template'

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // What tests start is what production starts: the compiled program. It is written in spite of wrong types, which are
  // the type check's to refuse.
  await promisify(execFile)('npm', ['run', '-s', 'build']).catch(() => {})
  const directory = await mkdtemp(join(tmpdir(), 'berth-test-'))
  const postgres = await startEmbeddedPostgres({
    directory: join(directory, 'postgres'),
    durable: false,
    maxConnections: 200,
  })
  const url = postgres.url('postgres')
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`CREATE DATABASE ${templateName}`)
  await client.end()
  await migrate(postgres.url(templateName))
  project.provide('postgresUrl', url)
  return async () => {
    await postgres.stop()
    await rm(directory, { recursive: true, force: true })
  }
}
