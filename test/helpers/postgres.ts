// Starts a PostgreSQL for each test process, with the migrated template for test databases.
import { execFile } from 'node:child_process'
import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { buildParts, partNames } from '../../build/parts.ts'
import { migrate } from '../../prisma/migrate.ts'
import { startEmbeddedPostgres } from '../../src/embedded-postgres/index.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** One per process: a transaction in one database delays the event readers of its whole cluster. */
    postgresUrls: string[]
  }
}

export const templateName = 'berth_template'

const run = promisify(execFile)

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Tests start what production starts: the built program.
  await buildParts(partNames)
  const root = await mkdtemp(join(await scratchDirectory(), 'berth-test-'))
  // For root, a cluster in a private folder is stored elsewhere and can't be copied.
  await chmod(root, 0o711)
  const start = (directory: string) => startEmbeddedPostgres({ directory, durable: false, maxConnections: 200 })
  const directories = Array.from({ length: project.config.maxWorkers }, (_, index) => join(root, `postgres-${index}`))
  const [first, ...others] = directories
  const template = await start(first!)
  await makeTemplate(template.url('postgres'), template.url(templateName))
  await template.stop()
  for (const directory of others) await run('cp', ['-pR', first!, directory])
  const servers = await Promise.all(directories.map(start))
  project.provide(
    'postgresUrls',
    servers.map((server) => server.url('postgres')),
  )
  return async () => {
    await Promise.all(servers.map((server) => server.stop()))
    await rm(root, { recursive: true, force: true })
  }
}

const tmpfsType = 0x01021994
const neededBytes = 4 * 1024 ** 3

/** In memory if there is space: creating and deleting the thousand files of a database costs a fifth of the time on disk. */
async function scratchDirectory(): Promise<string> {
  const found = await statfs('/dev/shm').catch(() => undefined)
  return found?.type === tmpfsType && found.bavail * found.bsize >= neededBytes ? '/dev/shm' : tmpdir()
}

async function makeTemplate(admin: string, url: string): Promise<void> {
  const client = new pg.Client({ connectionString: admin })
  await client.connect()
  await client.query(`CREATE DATABASE ${templateName}`)
  await client.end()
  await migrate(url)
}
