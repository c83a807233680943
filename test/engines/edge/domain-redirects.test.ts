// Domains that redirect to others, and domains that move between projects, as visitors see them.
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createEdge } from '../../../src/engines/edge/serve/server.ts'
import { closeDatabase, openDatabase } from '../../../src/platform/database/database.ts'
import { createSnapshots } from '../../../src/platform/database/snapshots.ts'
import { changeDomain } from '../../../src/services/domains/changes.ts'
import { markUnverified, markVerified } from '../../../src/services/domains/states.ts'
import { changeAccount } from '../../../src/services/suspension/index.ts'
import { until } from '../../helpers/until.ts'
import { ask, type HttpsWorld, startHttpsWorld } from './https-world.ts'

let world: HttpsWorld
let directory: string
const log = pino({ level: 'silent' })
const snapshotsOf = () =>
  createSnapshots({ directory, vault: world?.vault ?? ({} as never), log, collectMs: 0, pauseMs: 0 })

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-redirects-'))
  world = await startHttpsWorld()
  await world.site('shop', { 'index.html': 'shop' })
  await world.site('other', { 'index.html': 'other' })
  await world.secure('shop', 'shop.test')
  await world.secure('other', 'old.test', ['old.test', '*.old.test'])
})
afterAll(async () => {
  await world.stop()
  await rm(directory, { recursive: true, force: true })
})

const change = (path: string, input: Parameters<typeof changeDomain>[3]['input']) =>
  changeDomain(world.db, world.config, world.actor, { path, input, precondition: () => {} })
const locationOf = async (host: string, path = '/') => (await world.get(host, path)).headers.location
const at = (path: string) => `https://shop.test:${world.httpsPort}${path}`

test('a domain that moves shows the other project at once, under the certificate that it has', async () => {
  await world.secure('shop', 'moving.test')
  const serial = await world.serialAt('moving.test')
  expect((await world.fetch('moving.test', '/')).text).toBe('shop')
  await change('moving.test', { project: 'other' })
  await until(async () => (await world.fetch('moving.test', '/')).text === 'other')
  expect((await world.fetch('shop.test', '/')).text).toBe('shop')
  await change('moving.test', { project: 'shop' })
  await until(async () => (await world.fetch('moving.test', '/')).text === 'shop')
  expect(await world.serialAt('moving.test')).toBe(serial)
})

test('a domain redirects over HTTP and HTTPS, in one step, with path and query, and its www with it', async () => {
  await change('old.test', { redirectTo: 'shop.test' })
  await until(async () => (await locationOf('old.test')) === at('/'))
  const path = '/a/b%20c?d=1&e=%2F'
  for (const answer of [
    await world.get('old.test', path),
    await world.fetch('old.test', path),
    await world.fetch('www.old.test', path),
    await ask(await world.session('old.test'), { ':path': path }),
    await world.get('old.test', path, {}, 'POST'),
  ]) {
    expect(answer).toMatchObject({ status: 308, text: '' })
    expect(answer.headers.location).toBe(at(path))
  }
  // What it is redirected to is served, and not redirected again.
  expect(await world.fetch('shop.test', '/')).toMatchObject({ status: 200, text: 'shop' })
  await change('old.test', { redirectStatus: 301 })
  await until(async () => (await world.get('old.test', '/')).status === 301)
  const sent = await world.raw('GET /\xff\x01\\..//evil HTTP/1.1\r\nHost: old.test\r\nConnection: close\r\n\r\n')
  expect(sent.match(/\r\nlocation: .*/g)?.length ?? 0).toBeLessThanOrEqual(1)
  expect(sent).toMatch(/^HTTP\/1.1 (400|301) /)
})

test('a path that looks like another host stays on the one that it is redirected to', async () => {
  for (const path of ['//evil.test/', '/\\evil.test', '/@evil.test', '/.evil.test']) {
    expect(new URL((await locationOf('old.test', path))!).host).toBe(`shop.test:${world.httpsPort}`)
  }
})

test('a wildcard redirects each name below it, to plain HTTP where there is no certificate', async () => {
  await world.attach('shop', 'plain.test')
  await world.secure('other', '*.old.test')
  await change('*.old.test', { redirectTo: 'plain.test' })
  await until(async () => (await locationOf('x.old.test', '/y?z')) === `http://plain.test:${world.port}/y?z`)
  expect((await world.fetch('x.old.test', '/y?z')).headers.location).toBe(`http://plain.test:${world.port}/y?z`)
  expect(await locationOf('old.test')).toBe(at('/'))
})

test('nobody is sent to a name that is not proved: the domain shows its project until it is', async () => {
  const { id } = await world.db.domain.findFirstOrThrow({ where: { name: 'shop.test' } })
  const observed = { nameservers: [], txt: [] }
  await world.db.domain.update({ where: { id }, data: { misses: 3 } })
  await markUnverified(world.db, world.config, id, { observed, reason: 'gone', nextCheckAt: new Date() })
  await until(async () => (await world.fetch('old.test', '/')).text === 'other')
  await markVerified(world.db, world.config, id, { method: 'txt', observed })
  await until(async () => (await locationOf('old.test')) === at('/'))
})

test('an edge that starts without the database redirects as before', async () => {
  const { notifications, artifacts, vault, config, db } = world
  const rest = { notifications, artifacts, vault, config, log }
  const first = createEdge({ ...rest, db, snapshots: snapshotsOf() })
  await first.listen()
  await first.close()
  const dead = openDatabase('postgres://nobody@127.0.0.1:1/none', 1)
  const second = createEdge({ ...rest, db: dead, snapshots: snapshotsOf() })
  const { port } = await second.listen()
  const location = await new Promise((resolve, reject) => {
    request({ port, path: '/x?y', headers: { host: 'x.old.test' } }, (response) => {
      resolve(`${response.resume().statusCode} ${response.headers.location}`)
    })
      .on('error', reject)
      .end()
  })
  expect(location).toMatch(/^308 http:\/\/plain\.test:\d+\/x\?y$/)
  await second.close()
  await closeDatabase(dead)
})

test('a domain of a suspended account redirects nobody', async () => {
  const { db, urls, actor } = world
  const operator = { ...actor, accountId: 'acc_operator' }
  const suspend = (suspended: boolean) =>
    changeAccount(db, operator, actor.accountId, { urls, input: { suspended }, precondition: () => {} })
  await suspend(true)
  await until(async () => (await world.get('old.test', '/')).status === 403)
  expect((await world.fetch('x.old.test', '/')).status).toBe(403)
  await suspend(false)
  await until(async () => (await locationOf('old.test')) === at('/'))
})
