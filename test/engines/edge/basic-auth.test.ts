import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorld, type World } from './world.ts'

let world: World
let host: string
beforeAll(async () => {
  world = await startWorld()
  host = await world.site(
    'guarded',
    {
      'index.html': 'home',
      'secret/index.html': 'plans',
      'secret/app.3f2a9c1d.js': 'script',
      'team.html': 'people',
      'mine.html': 'mine',
      '404.html': 'lost',
      _redirects: '/shown/* /secret/:splat 200\n/go /team 302\n/home /de/ 302 Language=de',
      _headers: [
        '/secret/*\n  Basic-Auth: ann:one bob:two:three\n  X-Secret: yes\n  CDN-Cache-Control: public, max-age=60',
        '/team.html\n  Basic-Auth: team:four\n/team\n  Cache-Control: public, s-maxage=60, max-age=30',
        '/secret/app.3f2a9c1d.js\n  Basic-Auth: script:five',
      ].join('\n'),
    },
    { cleanUrls: true },
  )
})
afterAll(() => world.stop())

const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` })
const get = (path: string, headers = {}, method = 'GET') => world.get(host, path, headers, method)

test('a protected path asks for a name and a password, and keeps what it shows out of shared caches', async () => {
  for (const method of ['GET', 'HEAD']) {
    const asked = await get('/secret/', {}, method)
    expect(asked.status).toBe(401)
    expect(asked.headers).toMatchObject({ 'www-authenticate': 'Basic realm="Protected", charset="UTF-8"' })
    expect(asked.headers['cache-control']).toBe('private, no-store')
    expect(asked.text).not.toContain('plans')
  }
  for (const who of ['ann:one', 'bob:two:three']) {
    const { status, text, headers } = await get('/secret/', basic(who))
    expect([status, text]).toEqual([200, 'plans'])
    expect(headers['cache-control']).toBe('private, max-age=0, must-revalidate')
    expect(headers).toMatchObject({ 'x-secret': 'yes' })
    expect(Object.keys(headers)).not.toContain('basic-auth')
    expect(headers).not.toHaveProperty('cdn-cache-control')
  }
  const script = await get('/secret/app.3f2a9c1d.js', basic('ann:one'))
  expect(script.headers['cache-control']).toBe('private, max-age=31536000, immutable')
  expect((await get('/team', basic('team:four'))).headers['cache-control']).toBe('private, max-age=30')
})

test('nothing but one of the right pairs opens it', async () => {
  const wrong = ['ann', 'ann:', 'ann:ONE', 'ann:one ', 'bob:two', ':', '', 'ann:one bob:two:three', 'team:four']
  for (const who of wrong) expect((await get('/secret/', basic(who))).status).toBe(401)
  for (const authorization of [
    'Basic',
    'Basic !!!',
    'Bearer YW5uOm9uZQ==',
    'YW5uOm9uZQ==',
    `Basic ${'A'.repeat(9000)}`,
  ]) {
    expect((await get('/secret/', { authorization })).status).toBe(401)
  }
})

test('no other address, condition or range leads around it', async () => {
  const { etag } = (await get('/secret/', basic('ann:one'))).headers
  expect((await get('/secret/', { 'if-none-match': etag })).status).toBe(401)
  expect((await get('/secret/', { range: 'bytes=0-1' })).status).toBe(401)
  for (const path of ['/secret', '/secret/index.html', '/secret/%69ndex.html', '/secret/?a', '/secret/nothing']) {
    expect((await get(path)).status).toBe(401)
  }
  // A rewrite to a protected file, and the other address of a protected page.
  for (const path of ['/shown/', '/shown/app.3f2a9c1d.js', '/team', '/team.html?x']) {
    const { status, text } = await get(path)
    expect([301, 308, 401, 404]).toContain(status)
    expect(text).not.toMatch(/plans|script|people/)
  }
  expect((await get('/shown/', basic('ann:one'))).text).toBe('plans')
})

test('the rest of the site is open, and kept by caches as ever', async () => {
  const { status, headers } = await get('/mine')
  expect([status, headers['cache-control']]).toEqual([200, 'public, max-age=0, must-revalidate'])
  expect((await get('/go')).headers.location).toBe('/team')
})

test('what depends on the language says so', async () => {
  const { status, headers } = await get('/home', { 'accept-language': 'de' })
  expect([status, headers.location, headers.vary]).toEqual([302, '/de/', 'Accept-Language'])
  expect((await get('/home')).status).toBe(404)
  expect((await get('/')).headers.vary).toContain('Accept-Language')
})

test('guesses of an address are bounded, and who has shown the right pair before goes on', async () => {
  const other = await world.site('guessed', {
    'index.html': 'home',
    'secret/index.html': 'plans',
    _headers: '/secret/*\n  Basic-Auth: ann:one bob:two',
  })
  const ask = (who: string, at = other) => world.get(at, '/secret/', basic(who))
  expect((await ask('ann:one')).text).toBe('plans')
  // A browser repeats what is wrong for every picture of a page.
  for (let time = 0; time < 40; time++) expect((await ask('ann:wrong')).status).toBe(401)
  for (let guess = 1; guess < 30; guess++) expect((await ask(`ann:${guess}`)).status).toBe(401)
  const refused = await ask('ann:31')
  expect(refused.status).toBe(429)
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(800)
  expect(refused.headers['cache-control']).toBe('private, no-store')
  // Nobody learns from it what is right.
  expect((await ask('bob:two')).status).toBe(429)
  expect((await ask('ann:wrong')).status).toBe(401)
  expect((await ask('ann:one')).text).toBe('plans')
  expect((await world.get(other, '/secret/')).status).toBe(401)
  expect((await world.get(other, '/')).status).toBe(200)
  // Another project has its own count.
  expect((await get('/secret/', basic('bob:two:three'))).status).toBe(200)
})
