// Migrations as a step of their own: in production a process with some of the roles waits for the schema, and says so.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { migrate, missingMigrations } from '../../prisma/migrate.ts'
import { loadConfig } from '../../src/config.ts'
import { run } from '../../src/roles/run.ts'
import { runCommand } from '../helpers/command.ts'
import { postgresUrl } from '../helpers/database.ts'
import { type Program, startProgram } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'

vi.setConfig({ testTimeout: 120_000 })

let url: string
let environment: Record<string, string>
const running: Program[] = []
let made = 0

async function query(address: string, text: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: address })
  await client.connect()
  try {
    return await client.query(text)
  } finally {
    await client.end()
  }
}

beforeEach(async () => {
  const address = new URL(postgresUrl())
  const name = `schema_${process.pid}_${++made}`
  await query(address.href, `CREATE DATABASE ${name}`)
  address.pathname = `/${name}`
  url = address.href
  environment = {
    NODE_ENV: 'production',
    DATABASE_URL: url,
    DATA_DIR: await mkdtemp(join(tmpdir(), 'berth-schema-')),
    BASE_URL: 'https://api.example.com',
    TRUSTED_PROXIES: '127.0.0.1',
    SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    ALLOW_DEVELOPMENT_CA: 'true',
    ALLOW_TEST_NAMESERVERS: 'true',
    ALLOW_LOCALHOST: 'true',
  }
})
afterEach(async () => {
  for (const { child, stop } of running.splice(0)) if (child.exitCode === null) await stop('SIGKILL')
  await rm(environment.DATA_DIR!, { recursive: true, force: true })
})

async function start(roles: string): Promise<Program> {
  const program = await startProgram(roles, environment)
  running.push(program)
  return program
}

/** Resolves with its report when the process says that it waits. */
const waits = (program: Program) =>
  until(async () => {
    if (program.child.exitCode !== null) throw new Error(`it ended before it waited: ${program.output()}`)
    const report = await program.readiness()
    return report?.checks.schema?.includes('berth migrate') && report
    // On a busy machine a start has taken 20 s.
  }, 90_000)

test('roles wait for the schema, alive and unready, until `berth migrate` has applied it', async () => {
  const [api, nameserver] = await Promise.all([start('api'), start('nameserver')])
  for (const program of [api, nameserver]) {
    expect(await waits(program)).toMatchObject({ code: 503, checks: { start: 'The process is starting.' } })
    expect((await fetch(`http://127.0.0.1:${program.ports.METRICS_PORT}/healthz`)).status).toBe(200)
    const told = /older than this version, by \d+ migrations from 20261115000000_first on: run `berth migrate`/
    await until(() => told.test(program.output()))
  }
  expect((await query(url, `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)).rows).toEqual([])
  // One that waits can be stopped.
  expect(await nameserver.stop()).toBe(0)
  const refused = await runCommand(['accounts', 'create', 'acme'], environment)
  expect(refused).toMatchObject({
    code: 1,
    output: expect.stringMatching(/^berth: The schema .* run `berth migrate`\.\n$/),
  })

  // With no other setting than the address of the database.
  const migrated = await runCommand(['migrate'], { NODE_ENV: 'production', DATABASE_URL: url })
  expect(migrated).toMatchObject({ code: 0, output: expect.stringContaining('Applied 20261115000000_first, ') })
  await api.ready()
  expect((await api.readiness())!.checks).toMatchObject({ schema: 'ok' })
  expect((await api.readiness())!.checks).not.toHaveProperty('start')
})

/** Starts a nameserver in this process, as production does, and stops it. */
async function runNameserver(more: Record<string, string>): Promise<void> {
  const quiet = { METRICS_PORT: '0', NAMESERVER_LISTEN: '127.0.0.1:0', NAMESERVER_WORKERS: '0', LOG_LEVEL: 'silent' }
  await (await run(loadConfig({ ...environment, ...quiet, ...more }), ['nameserver'])).stop()
}

test('MIGRATE=true has a process of some roles migrate, and the schema of a newer version will do', async () => {
  await runNameserver({ MIGRATE: 'true' })
  expect(await missingMigrations(url)).toEqual([])
  await query(
    url,
    `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at)
       VALUES ('later', '', '29991231000000_later', now())`,
  )
  await runNameserver({})
})

test('what is missing is told, and what was changed after it was applied is refused', async () => {
  const all = await missingMigrations(url)
  expect(await migrate(url, all[3])).toEqual(all.slice(0, 3))
  expect(await missingMigrations(url)).toEqual(all.slice(3))
  await query(url, `UPDATE _prisma_migrations SET checksum = 'other' WHERE migration_name = '${all[0]}'`)
  await expect(missingMigrations(url)).rejects.toThrow(/was changed after it was applied/)
})
