import type { IncomingMessage, ServerResponse } from 'node:http'
import { request as ask, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPreviews } from '../../../src/engines/edge/guards/previews.ts'
import { createPasswordHasher } from '../../../src/platform/secrets/password-hash.ts'
import { createVault } from '../../../src/platform/secrets/secrets.ts'
import { shareDeployment } from '../../../src/services/deployments/shares.ts'
import { shareParameter, signPass } from '../../../src/services/projects/previews.ts'
import { changeProject } from '../../../src/services/projects/projects.ts'
import { until } from '../../helpers/until.ts'
import { type Answer, type Files, startWorld, type World } from './world.ts'

const vault = createVault(Buffer.alloc(32, 7))
const hasher = createPasswordHasher({ use: { kind: 'scrypt', parameters: { ln: 10, r: 8, p: 1 } } })
const servers = {
  async ready() {},
  proxy: (_request: IncomingMessage, response: ServerResponse) =>
    void response.writeHead(200, ['Cache-Control', 'public, s-maxage=9', 'Set-Cookie', 'own=1']).end('the server'),
  upgrade: (_request: unknown, socket: Duplex) => void socket.end('HTTP/1.1 200 OK\r\n\r\nthe server'),
  async retire() {},
  async halt() {},
  async close() {},
}

let world: World
beforeAll(async () => {
  world = await startWorld({ vault, servers })
})
afterAll(() => world.stop())

async function protect(project: string, settings: Record<string, unknown>, host: string): Promise<void> {
  const passwordHash = settings.previewPassword ? await hasher.hash(String(settings.previewPassword)) : undefined
  const before = world.edge.snapshot!.find(host)?.gate?.version
  const input = { settings } as never
  await changeProject(world.db, world.urls, world.actor, { key: project, input, passwordHash, precondition() {} })
  await until(() => world.edge.snapshot!.find(host)?.gate?.version !== before)
}

/** A project with production, and a preview that is served. */
async function projectOf(name: string, settings: Record<string, unknown>, kind: 'static' | 'node' = 'static') {
  const files: Files = kind === 'static' ? { 'index.html': 'the page', 'app.3f2a9c1d.js': 'script' } : {}
  await world.site(name, files, { kind })
  const preview = await world.deploy(name, files, { kind })
  await until(() => world.edge.snapshot!.find(preview.host)?.target)
  await protect(name, settings, preview.host)
  return { ...preview, production: `${name}.localhost` }
}

function post(host: string, body: string, type = 'application/x-www-form-urlencoded'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { host, 'content-type': type }
    const sent = ask({ port: world.port, path: '/.berth/unlock', method: 'POST', headers }, async (response) => {
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += chunk
      resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.from(text), text })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const cookieOf = ({ headers }: Answer) => headers['set-cookie']![0]!.split(';', 1)[0]!
const share = async (id: string, expiresIn?: number) =>
  new URL(
    (await shareDeployment(world.db, { urls: world.urls, vault }, world.actor, { id, expiresIn: expiresIn ?? 600 }))
      .url,
  )

test('a password opens previews of the project, and production stays open to all', async () => {
  const { host, production } = await projectOf('secretive', {
    previewProtection: 'password',
    previewPassword: 'open sesame',
  })
  const first = await world.get(host, '/?a=%22%3E<b>')
  expect(first.status).toBe(401)
  expect(first.headers['cache-control']).toBe('private, no-store')
  expect(first.headers['content-security-policy']).toContain("form-action 'self'")
  expect(first.text).toContain('type="password"')
  expect(first.text).not.toMatch(/the page|<b>|<script/)
  expect((await world.get(host, '/', {}, 'HEAD')).status).toBe(401)
  expect((await world.get(host, '/app.3f2a9c1d.js')).status).toBe(401)
  expect((await world.get(production, '/')).text).toBe('the page')

  for (const body of ['password=wrong', 'password=', '', 'x'.repeat(20_000)])
    expect((await post(host, body)).status).toBe(401)
  expect((await post(host, '{"password":"open sesame"}', 'application/json')).status).toBe(401)

  const opened = await post(host, 'password=open+sesame&to=%2F%3Fa%3D1')
  expect([opened.status, opened.headers.location]).toEqual([303, '/?a=1'])
  expect(opened.headers['set-cookie']![0]).toMatch(/; Path=\/; Max-Age=\d+; HttpOnly; Secure; SameSite=Lax$/)
  const cookie = cookieOf(opened)
  const shown = await world.get(host, '/', { cookie: `other=1; ${cookie}` })
  expect([shown.status, shown.text]).toEqual([200, 'the page'])
  expect(shown.headers['cache-control']).toBe('private, max-age=0, must-revalidate')
  const asset = await world.get(host, '/app.3f2a9c1d.js', { cookie })
  expect(asset.headers['cache-control']).toBe('private, max-age=31536000, immutable')
  // All previews of the project, and none of another one.
  const later = await world.deploy('secretive', { 'index.html': 'the next page' })
  await until(() => world.edge.snapshot!.find(later.host)?.target)
  expect((await world.get(later.host, '/')).status).toBe(401)
  expect((await world.get(later.host, '/', { cookie })).text).toBe('the next page')
  const other = await projectOf('other', { previewProtection: 'password', previewPassword: 'open sesame' })
  expect((await world.get(other.host, '/', { cookie })).status).toBe(401)
  // Another password ends what the one before has opened.
  await protect('secretive', { previewPassword: 'another word' }, host)
  expect((await world.get(host, '/', { cookie })).status).toBe(401)
  await protect('secretive', { previewProtection: 'none' }, host)
  expect((await world.get(host, '/')).text).toBe('the page')
})

test('nobody is sent to another host after the password', async () => {
  const { host } = await projectOf('sender', { previewProtection: 'password', previewPassword: 'open sesame' })
  for (const to of [
    '//evil.example',
    '/\\evil.example',
    'https://evil.example',
    'javascript:1',
    '',
    `/${'a'.repeat(3_000)}`,
  ]) {
    const { headers } = await post(host, `password=open+sesame&to=${encodeURIComponent(to)}`)
    expect(headers.location).toBe('/')
  }
  const { headers } = await post(host, `password=open+sesame&to=${encodeURIComponent('/a\r\nset-cookie: b=c')}`)
  expect(headers.location).toBe('/a%0D%0Aset-cookie:%20b=c')
})

test('guesses are limited, also for the right password', async () => {
  const { host } = await projectOf('guessed', { previewProtection: 'password', previewPassword: 'open sesame' })
  for (let i = 0; i < 10; i++) expect((await post(host, `password=wrong${i}`)).status).toBe(401)
  const limited = await post(host, 'password=open+sesame')
  expect(limited.status).toBe(429)
  expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0)
  expect(limited.headers).not.toHaveProperty('set-cookie')
})

test('who sends the right password again and again takes no time of others: it is checked slowly once', async () => {
  const checked: string[] = []
  const counting = {
    ...hasher,
    verify(password: string, hash: string | null) {
      checked.push(password)
      return hasher.verify(password, hash)
    },
  }
  const respond = { file() {}, redirect() {}, page() {}, failure() {} }
  const previews = createPreviews({ vault, respond, count() {}, hasher: counting })
  const gate = { kind: 'password' as const, passwordHash: await hasher.hash('open sesame'), version: 1 }
  const found = { projectId: 'prj_1', target: null, hsts: false, barred: false, gate, pins: null }
  const front = createServer((request, response) => {
    previews.admits(request, Object.assign(response, { adjust: null }) as never, { url: request.url!, found })
  })
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  const unlock = (password: string) => {
    const body = new URLSearchParams({ password })
    const url = `http://127.0.0.1:${(front.address() as AddressInfo).port}/.berth/unlock`
    return fetch(url, { method: 'POST', body, redirect: 'manual' }).then(({ status }) => status)
  }
  for (const password of ['open sesame', 'wrong', 'open sesame', 'wrong', 'open sesame']) {
    expect(await unlock(password)).toBe(password === 'wrong' ? 401 : 303)
  }
  expect(checked).toEqual(['open sesame', 'wrong', 'wrong'])
  // Another password: what was right before is not.
  found.gate = { ...gate, passwordHash: await hasher.hash('another word'), version: 2 }
  expect(await unlock('open sesame')).toBe(401)
  front.close()
})

test('a link opens its own deployment, until it ends', async () => {
  const { host, id } = await projectOf('linked', { previewProtection: 'link' })
  const refused = await world.get(host, '/')
  expect(refused.status).toBe(401)
  expect(refused.text).not.toContain('<form')
  expect((await post(host, 'password=x')).status).toBe(401)
  const link = await share(id)
  expect(link.hostname).toBe(host)
  const opened = await world.get(host, `/deep?a=1&${link.search.slice(1)}&b=2`)
  expect([opened.status, opened.headers.location]).toEqual([303, '/deep?a=1&b=2'])
  expect(opened.headers['referrer-policy']).toBe('no-referrer')
  const cookie = cookieOf(opened)
  expect((await world.get(host, '/', { cookie })).text).toBe('the page')
  const sibling = await world.deploy('linked', { 'index.html': 'the next page' })
  await until(() => world.edge.snapshot!.find(sibling.host)?.target)
  expect((await world.get(sibling.host, '/', { cookie })).status).toBe(401)
  expect((await world.get(sibling.host, `/${link.search}`)).status).toBe(401)

  const row = await world.db.project.findFirstOrThrow({ where: { name: 'linked' } })
  const key = { projectId: row.id, version: row.previewVersion }
  const over = signPass(vault, 'link', key, { scope: id, expiresMs: Date.now() - 1000 })
  const foreign = signPass(createVault(Buffer.alloc(32, 8)), 'link', key, { scope: id, expiresMs: Date.now() + 9e5 })
  const good = link.searchParams.get(shareParameter)!
  const asCookie = signPass(vault, 'cookie', key, { scope: id, expiresMs: Date.now() + 9e5 })
  for (const bad of [
    over,
    foreign,
    asCookie,
    good.replace(id, 'all'),
    good.slice(0, -2),
    `${good}x`,
    '',
    '..',
    '%00',
  ]) {
    const { status, headers } = await world.get(host, `/?${shareParameter}=${bad}`)
    expect([status, headers['set-cookie']]).toEqual([401, undefined])
  }
  // A link is no cookie.
  expect((await world.get(host, '/', { cookie: `berth_preview=${good}` })).status).toBe(401)
  // Off and on again: links from before are over.
  await protect('linked', { previewProtection: 'none' }, host)
  await protect('linked', { previewProtection: 'link' }, host)
  expect((await world.get(host, `/${link.search}`)).status).toBe(401)
})

test('servers and WebSockets are protected as files are', async () => {
  const { host, id } = await projectOf('server', { previewProtection: 'link' }, 'node')
  for (const method of ['GET', 'POST', 'DELETE']) expect((await world.get(host, '/api', {}, method)).status).toBe(401)
  const upgrade = (more = '') =>
    world.raw(`GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n${more}\r\n`)
  expect(await upgrade()).toContain('401 Unauthorized')
  const cookie = cookieOf(await world.get(host, `/${(await share(id)).search}`))
  expect(await upgrade(`cookie: ${cookie}\r\n`)).toContain('the server')
  const { text, headers } = await world.get(host, '/api', { cookie })
  expect([text, headers['cache-control'], headers['set-cookie']]).toEqual(['the server', 'private', ['own=1']])
})

test('the folder of challenges is open, and tells nothing about the site', async () => {
  const { host } = await projectOf('challenged', { previewProtection: 'link' }, 'node')
  for (const path of ['/.well-known/acme-challenge/x', '/.well-known/acme-challenge/../../admin']) {
    const { status, text } = await world.get(host, path)
    expect(status).toBe(404)
    expect(text).not.toContain('the server')
  }
})
