// Settings that act when a site is served: a change applies to deployments that are there already, without another one.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { changeProject } from '../../../src/services/projects/projects.ts'
import { until } from '../../helpers/until.ts'
import { startWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.stop())

const change = (key: string, settings: { spaFallback?: boolean | null; cleanUrls?: boolean }) =>
  changeProject(world.db, world.urls, world.actor, { key, input: { settings }, precondition: () => {} })
const page = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

test('unknown paths get index.html as soon as the project says so, and no longer when it says the opposite', async () => {
  const host = await world.site('notes', { 'index.html': 'home', 'app.js': 'x' })
  const preview = (await world.deploy('notes', { 'index.html': 'preview' })).host
  const get = async (path: string, headers: Record<string, string> = page) => {
    const { status, text } = await world.get(host, path, headers)
    return status === 404 ? 404 : `${status} ${text}`
  }
  expect(await get('/users/7')).toBe(404)
  await change('notes', { spaFallback: true })
  await until(async () => (await get('/users/7')) === '200 home')
  expect(await world.get(preview, '/users/7', page)).toMatchObject({ status: 200, text: 'preview' })
  expect(await get('/gone.js')).toBe(404)
  await change('notes', { spaFallback: false })
  await until(async () => (await get('/users/7')) === 404)
})

test('what detection found holds until the project says something else', async () => {
  const host = await world.site('found', { 'index.html': 'home' }, { spaFallback: true })
  const status = async () => (await world.get(host, '/users/7', page)).status
  expect(await status()).toBe(200)
  await change('found', { spaFallback: false })
  await until(async () => (await status()) === 404)
  await change('found', { spaFallback: null })
  await until(async () => (await status()) === 200)
})

test('only who accepts HTML gets the page of an app, and caches are told', async () => {
  const host = await world.site('data', { 'index.html': 'home' }, { spaFallback: true })
  const get = (accept?: string) => world.get(host, '/data/7', accept === undefined ? {} : { accept })
  for (const accept of [undefined, '*/*', 'text/html', 'text/*', 'image/png, */*;q=0.1', 'application/xhtml+xml']) {
    expect(await get(accept), accept).toMatchObject({ status: 200, text: 'home' })
  }
  for (const accept of [
    'application/json',
    'image/*',
    'text/css,application/json',
    'text/html;q=0, application/json',
  ]) {
    const { status, headers } = await get(accept)
    expect([status, headers.vary], accept).toEqual([404, 'accept'])
  }
  expect((await get('text/html')).headers.vary).toMatch(/accept$/)
  expect((await world.get(host, '/')).headers.vary ?? '').not.toMatch(/accept$/)
})

test('addresses of pages follow cleanUrls at once', async () => {
  const host = await world.site('clean', { 'index.html': 'home', 'about.html': 'about' })
  const status = async (path: string) => (await world.get(host, path)).status
  expect([await status('/about'), await status('/about.html')]).toEqual([200, 308])
  await change('clean', { cleanUrls: false })
  await until(async () => (await status('/about.html')) === 200)
  expect(await status('/about')).toBe(404)
  await change('clean', { cleanUrls: true })
  await until(async () => (await status('/about')) === 200)
  expect(await status('/about.html')).toBe(308)
})

test('an edge that starts from what it kept serves the same', async () => {
  const { rows } = await import('../../../src/engines/edge/hosts/hosts.ts').then(({ HostTable }) => {
    const table = new HostTable('localhost', { move() {}, retire() {}, halt() {}, dropProject() {}, close() {} })
    const old = { name: 'kept', projectId: 'prj_1', deploymentId: 'dpl_1', kind: 'project' as const, server: false }
    const none = { redirectTo: null, redirectStatus: null, protection: 'none', passwordHash: null, previewVersion: 0 }
    const row = { ...none, ...old, hsts: false, barred: false, skew: false, served: false }
    table.apply([{ ...row, spaFallback: false, cleanUrls: true, instances: 1, switching: false, branch: null }])
    const first = [...table.rows()][0]
    // As an older version kept it: what the manifest says holds.
    table.apply([row as never])
    return { rows: [first, [...table.rows()][0]] }
  })
  expect(rows).toMatchObject([
    { spaFallback: false, cleanUrls: true },
    { spaFallback: null, cleanUrls: null },
  ])
})
