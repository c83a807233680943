import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorld, type World } from './world.ts'

const secret = 'TOP-SECRET'
let world: World
beforeAll(async () => {
  world = await startWorld()
  // Beside the store, above it, and hidden within the site itself.
  await writeFile(join(world.config.dataDir, 'secret.txt'), secret)
  await world.site('a', {
    'index.html': 'home',
    'docs/index.html': 'docs',
    'docs/page.txt': 'page',
    '.env': secret,
    '.git/config': secret,
    _redirects: `/old/* /:splat\n/x/* /:splat 200\n# ${secret}`,
    _headers: `/*\n  X-A: b\n# ${secret}`,
  })
  await world.site('b', { 'secret.txt': secret, 'index.html': secret })
})
afterAll(() => world.stop())

const ask = (target: string | Buffer, host = 'a.localhost') =>
  world.raw(
    Buffer.concat([
      Buffer.from('GET '),
      typeof target === 'string' ? Buffer.from(target, 'latin1') : target,
      Buffer.from(` HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
    ]),
  )

const climbs = [
  '/../secret.txt',
  '/../../secret.txt',
  '/docs/../../secret.txt',
  '/docs/../../../../../../etc/passwd',
  '/..;/secret.txt',
  '/docs/..;/..;/secret.txt',
  '/%2e%2e/secret.txt',
  '/%2e%2e%2fsecret.txt',
  '/..%2fsecret.txt',
  '/.%2e/secret.txt',
  '/%252e%252e/secret.txt',
  '/%252e%252e%252fsecret.txt',
  '/%25%32%65%25%32%65/secret.txt',
  '/..\\secret.txt',
  '/..%5csecret.txt',
  '/%2e%2e%5csecret.txt',
  '/docs\\..\\..\\secret.txt',
  '/%c0%ae%c0%ae/secret.txt',
  '/%c0%ae%c0%ae%c0%afsecret.txt',
  '/%e0%80%ae%e0%80%ae/secret.txt',
  '/%u002e%u002e/secret.txt',
  '/secret.txt%00.html',
  '/docs/page.txt%00',
  '/%00/../secret.txt',
  '/.env',
  '/%2eenv',
  '/%2Eenv',
  '/./.env',
  '/docs/../.env',
  '/docs/%2e%2e/.env',
  '/.git/config',
  '/%2egit%2fconfig',
  '/_redirects',
  '/_headers',
  '/%5fheaders',
  '/x/.env',
  '/x/%2eenv',
  '/x/_headers',
  '/x/../secret.txt',
  '/x/%2e%2e/%2e%2e/secret.txt',
  '/old/../.env',
  '//secret.txt',
  '/docs//../.env',
  'secret.txt',
  '../secret.txt',
  '/proc/self/environ',
  '/__proto__',
  '/constructor',
]

test.each(climbs)('%s leads nowhere', async (path) => {
  const answer = await ask(path)
  expect(answer).toMatch(/^HTTP\/1\.1 (?:400|404|301)/)
  expect(answer).not.toContain(secret)
})

test('raw bytes in the path lead nowhere', async () => {
  for (const bytes of [
    [0xc0, 0xae, 0xc0, 0xae],
    [0xff, 0xfe],
    [0x2f, 0x2e, 0x2e, 0x00],
    [0xe2, 0x80, 0xa5],
  ]) {
    const answer = await ask(Buffer.concat([Buffer.from('/'), Buffer.from(bytes), Buffer.from('/secret.txt')]))
    expect(answer).toMatch(/^HTTP\/1\.1 (?:400|404)/)
    expect(answer).not.toContain(secret)
  }
})

test('no redirect of a rule leaves the host', async () => {
  for (const path of ['/old//evil.example', '/old/\\evil.example', '/old/%5cevil.example', '/old/%2f%2fevil.example']) {
    const location = /^location: (.*)$/im.exec(await ask(path))?.[1]
    expect(new URL(location!, 'http://a.localhost').host).toBe('a.localhost')
  }
  const split = await ask('/old/x%0d%0aX-Injected:%20yes')
  expect(split).not.toMatch(/^x-injected/im)
})

test('files of the own site are found all the same, however they are spelled', async () => {
  expect(await ask('/docs/page.txt')).toContain('page')
  expect(await ask('/%64ocs%2fpage.txt')).toContain('page')
})

test('the host is read without port, case and last dot, and from absolute addresses', async () => {
  for (const host of ['A.LocalHost', 'a.localhost:8080', 'a.localhost.', 'a.localhost.:80']) {
    expect(await ask('/', host)).toMatch(/^HTTP\/1\.1 200/)
  }
  expect(await ask('http://a.localhost:81/docs/page.txt', 'b.localhost')).toContain('page')
  expect(await ask('http://a.localhost', 'b.localhost')).toContain('home')
})

test('a host that is missing, doubled or malformed is 400, and never shown unescaped', async () => {
  expect(await world.raw('GET / HTTP/1.1\r\nConnection: close\r\n\r\n')).toMatch(/^HTTP\/1\.1 400/)
  expect(await world.raw('GET / HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 400/)
  const twice = 'GET / HTTP/1.1\r\nHost: a.localhost\r\nhost: b.localhost\r\nConnection: close\r\n\r\n'
  expect(await world.raw(twice)).toMatch(/^HTTP\/1\.1 400/)
  for (const host of [
    '<script>alert(1)</script>',
    'a b',
    'a@b.localhost',
    '../a',
    '*.localhost',
    'a.localhost:x',
    '',
  ]) {
    const answer = await ask('/', host)
    expect(answer).toMatch(/^HTTP\/1\.1 400/)
    expect(answer).not.toContain('<script>')
  }
  expect(await ask('/', '[::1]:80')).toMatch(/^HTTP\/1\.1 404/)
})

test('a body that nobody asked for is not read to its end', async () => {
  const head = 'POST / HTTP/1.1\r\nHost: a.localhost\r\nContent-Length: 1000000000\r\n\r\n'
  expect(await world.raw(`${head}${'x'.repeat(1_000)}`)).toMatch(/^HTTP\/1\.1 405/)
})
