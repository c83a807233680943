import { afterAll, beforeAll, expect, test } from 'vitest'
import { deleteDeployment } from '../../../src/services/deployments/deployments.ts'
import { changeProject } from '../../../src/services/projects/projects.ts'
import { until } from '../../helpers/until.ts'
import { startWorld, type World } from './world.ts'

let world: World
const ids: Record<string, string> = {}
const host = 'skewed.localhost'
const navigate = { 'sec-fetch-mode': 'navigate' }
const get = (path: string, headers = {}) => world.get(host, path, headers)
const page = (name: string) => ({ 'index.html': name, [`${name}.3f2a9c1d.js`]: name, 'data.json': name })

async function deploy(name: string, production = true, files: Record<string, string> = page(name)): Promise<void> {
  ids[name] = (await world.deploy('skewed', files, { production })).id
  const isShown = () => world.edge.snapshot!.find(host)?.target?.deploymentId === ids[name]
  if (production) await until(isShown)
}

beforeAll(async () => {
  world = await startWorld()
  await world.newProject('skewed')
  await deploy('old')
  await deploy('new')
  await deploy('preview', false)
  await world.site('foreign', page('foreign'))
  ids.foreign = world.edge.snapshot!.find('foreign.localhost')!.target!.deploymentId
  const change = { key: 'skewed', input: { settings: { skewProtection: true } }, precondition() {} }
  expect((await get('/data.json', { cookie: `__dpl=${ids.old}` })).text).toBe('new')
  await changeProject(world.db, world.urls, world.actor, change)
  await until(() => world.edge.snapshot!.find(host)?.pins)
})
afterAll(() => world.stop())

test('a page is of the current deployment and remembers it; what it loads later is of the same', async () => {
  const shown = await get('/', { ...navigate, cookie: `__dpl=${ids.old}` })
  expect(shown.text).toBe('new')
  expect(shown.headers['set-cookie']![0]).toMatch(
    new RegExp(`^__dpl=${ids.new}; Path=/; Max-Age=\\d+; HttpOnly; SameSite=Lax$`),
  )
  expect(shown.headers['cache-control']).toMatch(/^private/)
  const cookie = `a=b; __dpl=${ids.old}`
  const data = await get('/data.json', { cookie })
  expect([data.text, data.headers['set-cookie']]).toEqual(['old', undefined])
  expect(data.headers['cache-control']).toMatch(/^private/)
  const script = await get('/old.3f2a9c1d.js', { cookie })
  expect([script.text, script.headers['cache-control']]).toEqual(['old', 'public, max-age=31536000, immutable'])
  expect((await get('/old.3f2a9c1d.js')).status).toBe(404)
})

test('the parameter names a deployment, and a page that was asked for by it is remembered', async () => {
  expect((await get(`/data.json?dpl=${ids.old}`, { cookie: `__dpl=${ids.new}` })).text).toBe('old')
  const shown = await get(`/?a=1&dpl=${ids.old}`, { accept: 'text/html' })
  expect([shown.text, shown.headers['set-cookie']![0]!.split(';')[0]]).toEqual(['old', `__dpl=${ids.old}`])
})

test('no shared cache keeps what an earlier deployment has at an address of the current one', async () => {
  const forAll = { _headers: '/*\n  Cache-Control: public, max-age=900, immutable\n  CDN-Cache-Control: max-age=900' }
  await deploy('first', true, { ...page('first'), ...forAll })
  await deploy('second', true, { ...page('second'), ...forAll })
  const cookie = `__dpl=${ids.first}`
  for (const asked of [await get('/data.json', { cookie }), await get(`/data.json?dpl=${ids.first}`)]) {
    expect([asked.text, asked.headers['cache-control']]).toEqual(['first', 'private, max-age=900, immutable'])
    expect(asked.headers).not.toHaveProperty('cdn-cache-control')
  }
  expect((await get('/data.json')).headers['cache-control']).toBe('public, max-age=900, immutable')
})

test('nothing else is reached by it: no other project, no preview, nothing that is gone', async () => {
  for (const id of [ids.foreign, ids.preview, 'dpl_none', '../x', '', `${ids.old}x`]) {
    expect((await get(`/data.json?dpl=${id}`)).text).toBe('second')
    expect((await get('/data.json', { cookie: `__dpl=${id}` })).text).toBe('second')
  }
  const gone = { id: ids.old!, precondition() {} }
  await deleteDeployment(world.db, world.urls, world.actor, gone)
  await until(async () => (await get('/data.json', { cookie: `__dpl=${ids.old}` })).text === 'second')
})

test('a password that the site asks for now is not gone around by an earlier deployment', async () => {
  await deploy('guarded', true, { ...page('guarded'), _headers: '/*\n  Basic-Auth: a:b' })
  expect((await get(`/data.json?dpl=${ids.new}`)).status).toBe(401)
})
