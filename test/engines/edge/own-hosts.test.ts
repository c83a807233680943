// Hosts of the platform itself: the edge serves no project there, also not by rows from before they became its own.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadConfig } from '../../../src/config.ts'
import { type HttpsWorld, startHttpsWorld } from './https-world.ts'

const config = {
  ...loadConfig({ EDGE_HTTP_PORT: '0', EDGE_HTTPS_PORT: '0', BASE_URL: 'https://desk.localhost' }),
  nameservers: ['alpha.localhost', 'b.beta.localhost', 'ns.attached.test'],
}
// The API of this world knows nothing of the platform's names, as before the configuration changed.
let world: HttpsWorld
beforeAll(async () => {
  world = await startHttpsWorld({ config })
})
afterAll(() => world.stop())

test('a project at such a host gives way; its other hosts are served', async () => {
  const previews: string[] = []
  for (const name of ['desk', 'alpha', 'beta']) {
    await world.newProject(name)
    const { host } = await world.deploy(name, { 'index.html': `the site ${name}` }, { production: true })
    previews.push(host)
  }
  // Everything before it has been read when this one is served.
  await world.site('plain', { 'index.html': 'the site plain' })
  for (const host of ['desk', 'DESK', 'alpha', 'beta'].map((label) => `${label}.localhost`)) {
    for (const spelling of [host, `${host}.`, `${host}:8080`]) {
      const { status, text } = await world.get(spelling, '/')
      expect(status).toBe(404)
      expect(text).not.toContain('the site')
    }
  }
  for (const host of [...previews, 'plain.localhost']) expect((await world.get(host, '/')).text).toContain('the site')
})

test('an attached domain gives way, and its certificate is not shown there', async () => {
  await world.site('attached', { 'index.html': 'the site attached' })
  await world.secure('attached', 'attached.test')
  await world.secure('attached', '*.attached.test')
  expect((await world.fetch('any.attached.test', '/')).text).toBe('the site attached')
  expect(await world.serialAt('any.attached.test')).not.toBeNull()
  expect(await world.serialAt('ns.attached.test')).toBeNull()
  expect((await world.get('ns.attached.test', '/')).status).toBe(404)
  // Not over a connection that was opened for another host of the same certificate either.
  const misdirected = await world.fetch('ns.attached.test', '/', { servername: 'any.attached.test' })
  expect([404, 421]).toContain(misdirected.status)
})
