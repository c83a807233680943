// Edge and nameserver start from their last-good snapshot while the database is away, and catch up when it is back.
import { stat } from 'node:fs/promises'
import { get as getHttp } from 'node:http'
import { get as getHttps, type RequestOptions } from 'node:https'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { createAccount } from '../../src/services/accounts/accounts.ts'
import { createProject } from '../../src/services/projects/projects.ts'
import { suspend, takeDown } from '../engines/edge/barring.ts'
import { type HttpsWorld, startHttpsWorld } from '../engines/edge/https-world.ts'
import { askUdp } from '../engines/nameserver/packets.ts'
import { type Link, openLink } from '../helpers/link.ts'
import { type Program, startProgram } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'

vi.setConfig({ testTimeout: 120_000 })

let world: HttpsWorld
let link: Link
const running: Program[] = []

beforeAll(async () => {
  world = await startHttpsWorld()
  link = await openLink(world.databaseUrl)
  await world.site('shop', { 'index.html': 'open' })
  await world.secure('shop', 'shop.test')
  await world.site('phish', { 'index.html': 'phish' })
})
afterEach(async () => {
  for (const { child, stop } of running.splice(0)) if (child.exitCode === null) await stop('SIGKILL')
})
afterAll(async () => {
  link.close()
  await world.stop()
})

const files = ['hosts', 'certificates', 'zones']
const kept = (name: string) => join(world.config.dataDir, 'snapshots', name)
const writtenAt = async (name: string) => (await stat(kept(name)).catch(() => null))?.mtimeMs ?? 0

async function start(environment: Record<string, string> = {}, ports?: Program['ports']): Promise<Program> {
  const program = await startProgram(
    'edge,nameserver',
    {
      DATABASE_URL: link.url,
      DATA_DIR: world.config.dataDir,
      SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
      ...environment,
    },
    ports,
  )
  running.push(program)
  return program
}

type Shown = { status: number; text: string }

function visit({ ports }: Program, host: string): Promise<Shown> {
  return new Promise((resolve, reject) => {
    const secure = !host.endsWith('.localhost')
    const port = secure ? ports.EDGE_HTTPS_PORT : ports.EDGE_HTTP_PORT
    const options: RequestOptions = { host: '127.0.0.1', port, headers: { host }, agent: false }
    if (secure) Object.assign(options, { servername: host, ca: world.authority.rootPem })
    const sent = (secure ? getHttps : getHttp)(options, async (response) => {
      resolve({ status: response.statusCode!, text: Buffer.concat(await response.toArray()).toString() })
    })
    sent.on('error', reject)
  })
}

const resolves = async ({ ports }: Program, name: string) => (await askUdp(ports.DNS, name, 'A')).answer.length

test('pages, HTTPS and DNS are there after a reboot without the database; what is barred stays so; changes come with it', async () => {
  const first = await start()
  await first.ready()
  for (const name of files) await until(() => writtenAt(name))
  expect(await first.readiness()).toMatchObject({ status: 'ok', checks: { snapshot: 'ok' } })

  // Made while it runs, so that the file has to follow.
  const { account } = await createAccount(world.db, 'unpaid')
  const actor = { ...world.actor, accountId: account.id }
  await createProject(world.db, world.urls, actor, { region: 'r', input: { name: 'unpaid', repo: 'a/b' } })
  await until(async () => (await visit(first, 'unpaid.localhost')).status === 404)
  let before = await writtenAt('hosts')
  await suspend(world, account.id, true)
  await until(async () => (await writtenAt('hosts')) > before)
  before = await writtenAt('hosts')
  await takeDown(world, { host: 'phish.localhost' })
  await until(async () => (await writtenAt('hosts')) > before)

  link.cut()
  await first.stop('SIGKILL')
  const second = await start({}, first.ports)
  await second.ready()
  const state = await second.readiness()
  expect(state).toMatchObject({ code: 200, status: 'degraded' })
  expect(state!.checks.snapshot).toMatch(/hosts of 20.*certificates of 20.*zones of 20/)
  expect(await second.metrics()).toContain('berth_snapshot_in_use{what="hosts"} 1')
  expect(await visit(second, 'shop.localhost')).toEqual({ status: 200, text: 'open' })
  expect(await visit(second, 'shop.test')).toEqual({ status: 200, text: 'open' })
  expect(await resolves(second, 'shop.test')).toBe(1)
  expect((await visit(second, 'phish.localhost')).status).toBe(403)
  expect((await visit(second, 'unpaid.localhost')).status).toBe(403)

  await link.mend()
  await until(async () => (await second.readiness())?.status === 'ok')
  expect(await second.metrics()).toContain('berth_snapshot_in_use{what="hosts"} 0')
  await world.deploy('shop', { 'index.html': 'changed' }, { production: true })
  await until(async () => (await visit(second, 'shop.test')).text === 'changed')
  await world.attach('shop', 'new.test')
  await until(async () => (await resolves(second, 'new.test')) === 1)
  expect((await visit(second, 'phish.localhost')).status).toBe(403)
  expect(await second.stop()).toBe(0)
})

test('a snapshot of another key is told of in one line and not used, and the start fails as without one', async () => {
  link.cut()
  const before = await Promise.all(files.map(writtenAt))
  const program = await start({ SECRETS_KEY: Buffer.alloc(32, 8).toString('base64') })
  await until(() => program.child.exitCode === 1)
  const told = program.output().match(/.*"what":"hosts".*snapshot cannot be used/g)
  expect(told).toHaveLength(1)
  expect(told![0]).toContain('written with another SECRETS_KEY')
  expect(await Promise.all(files.map(writtenAt))).toEqual(before)
  expect(program.output()).toMatch(/^berth: The database does not answer at DATABASE_URL .*snapshot.*$/m)
})

test('a database that says nothing is as good as away', async () => {
  await link.mend()
  link.freeze()
  const program = await start()
  await program.ready()
  expect(await visit(program, 'shop.test')).toEqual({ status: 200, text: 'changed' })
  link.thaw()
  await until(async () => (await program.readiness())?.status === 'ok')
})
