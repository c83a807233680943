import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../../helpers/until.ts'
import { startWorld, type World } from './world.ts'

const page = `<h1>hello</h1>${'<p>text</p>'.repeat(500)}`
const large = randomBytes(700_000)
let world: World
let host: string
beforeAll(async () => {
  world = await startWorld()
  host = await world.site('site', {
    'index.html': page,
    'about.html': '<h1>about</h1>',
    'docs/index.html': '<h1>docs</h1>',
    '404.html': '<h1>lost</h1>',
    'app.3f2a9c1d.js': 'console.log(1)',
    'large.bin': large,
    'empty.txt': '',
    'ünï code.txt': 'unicode',
    '.env': 'SECRET=1',
    '.well-known/security.txt': 'Contact: x',
    _redirects: '/old /about 302\n/app/* /index.html 200\n',
    _headers: '/*\n  X-Everywhere: yes\n/about\n  X-About: yes\n  Cache-Control: max-age=60\n/app/*\n  X-App: yes\n',
  })
})
afterAll(() => world.stop())

describe('a file', () => {
  test('comes with its type, length, strong tag and caching', async () => {
    const { status, headers, text } = await world.get(host, '/')
    expect(status).toBe(200)
    expect(text).toBe(page)
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-length': String(page.length),
      'cache-control': 'public, max-age=0, must-revalidate',
      'accept-ranges': 'bytes',
      vary: 'Accept-Encoding',
      'x-everywhere': 'yes',
    })
    expect(headers.etag).toMatch(/^"[0-9a-f]{32}"$/)
    const asset = await world.get(host, '/app.3f2a9c1d.js')
    expect(asset.headers['cache-control']).toBe('public, max-age=31536000, immutable')
  })

  test('comes in the encoding that the client likes best, each with a tag of its own', async () => {
    const br = await world.get(host, '/', { 'accept-encoding': 'gzip, deflate, br' })
    expect(br.headers).toMatchObject({ 'content-encoding': 'br', vary: 'Accept-Encoding' })
    expect(brotliDecompressSync(br.body).toString()).toBe(page)
    const gzip = await world.get(host, '/', { 'accept-encoding': 'gzip, br;q=0.1' })
    expect(gzip.headers['content-encoding']).toBe('gzip')
    expect(gunzipSync(gzip.body).toString()).toBe(page)
    const plain = await world.get(host, '/')
    expect(new Set([br, gzip, plain].map(({ headers }) => headers.etag)).size).toBe(3)
  })

  test('is not sent again to whoever has it', async () => {
    const encoding = { 'accept-encoding': 'br' }
    const { headers } = await world.get(host, '/', encoding)
    const again = await world.get(host, '/', { ...encoding, 'if-none-match': `"x", W/${headers.etag}` })
    expect(again.status).toBe(304)
    expect(again.body).toHaveLength(0)
    expect(again.headers).toMatchObject({ etag: headers.etag, vary: 'Accept-Encoding', 'x-everywhere': 'yes' })
    expect(again.headers).not.toHaveProperty('content-type')
    // The tag of the other encoding is the tag of other bytes.
    expect((await world.get(host, '/', { 'if-none-match': headers.etag! })).status).toBe(200)
  })

  test('tells HEAD the same as GET, without the body', async () => {
    for (const path of ['/', '/large.bin', '/nope', '/old']) {
      const [head, get] = [await world.get(host, path, {}, 'HEAD'), await world.get(host, path)]
      expect(head.body).toHaveLength(0)
      expect({ ...head.headers, date: '' }).toEqual({ ...get.headers, date: '' })
      expect(head.status).toBe(get.status)
    }
  })

  test('may be empty, and may have any name', async () => {
    expect(await world.get(host, '/empty.txt')).toMatchObject({ status: 200, text: '' })
    expect(await world.get(host, '/empty.txt', { range: 'bytes=0-' })).toMatchObject({ status: 416 })
    expect(await world.get(host, encodeURI('/ünï code.txt'))).toMatchObject({ status: 200, text: 'unicode' })
  })

  test('comes whole from disk when it is large', async () => {
    const { body, headers } = await world.get(host, '/large.bin')
    expect(body.equals(large)).toBe(true)
    expect(headers).not.toHaveProperty('vary')
  })
})

describe('ranges', () => {
  test.each([
    ['/large.bin', large],
    ['/', Buffer.from(page)],
  ])('of %s fit together, from disk and from memory', async (path, content) => {
    const middle = Math.floor(content.length / 2)
    const first = await world.get(host, path, { range: `bytes=0-${middle}`, 'accept-encoding': 'br' })
    const rest = await world.get(host, path, { range: `bytes=${middle + 1}-`, 'if-range': first.headers.etag! })
    expect([first.status, rest.status]).toEqual([206, 206])
    expect(first.headers['content-range']).toBe(`bytes 0-${middle}/${content.length}`)
    expect(first.headers).not.toHaveProperty('content-encoding')
    expect(Buffer.concat([first.body, rest.body]).equals(content)).toBe(true)
  })

  test('beyond the end are 416, and If-Range of another file gives the whole', async () => {
    const beyond = await world.get(host, '/large.bin', { range: 'bytes=700000-' })
    expect(beyond.status).toBe(416)
    expect(beyond.headers['content-range']).toBe('bytes */700000')
    for (const tag of ['"other"', 'Sun, 15 Nov 2026 00:00:00 GMT']) {
      const whole = await world.get(host, '/large.bin', { range: 'bytes=0-1', 'if-range': tag })
      expect([whole.status, whole.body.length]).toEqual([200, large.length])
    }
    expect((await world.get(host, '/nope', { range: 'bytes=0-1' })).status).toBe(404)
  })

  test('may be left in the middle without harm', async () => {
    for (let i = 0; i < 5; i++) {
      const socket = connect(world.port, '127.0.0.1', () =>
        socket.write(`GET /large.bin HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
      )
      await once(socket, 'data')
      socket.destroy()
    }
    expect((await world.get(host, '/large.bin')).body.length).toBe(large.length)
  })
})

describe('rules of the site', () => {
  test('redirect, rewrite and set headers by the path that was asked for', async () => {
    const old = await world.get(host, '/old?a=1')
    expect([old.status, old.headers.location]).toEqual([302, '/about?a=1'])
    const about = await world.get(host, '/about')
    expect(about.headers).toMatchObject({ 'x-about': 'yes', 'cache-control': 'max-age=60', 'x-everywhere': 'yes' })
    // Twice each: the second answer comes from what the first has made.
    for (let i = 0; i < 2; i++) {
      expect((await world.get(host, '/app/deep')).headers).toMatchObject({ 'x-app': 'yes' })
      expect((await world.get(host, '/')).headers).not.toHaveProperty('x-app')
    }
  })

  test('pages have one address, and the error page status 404', async () => {
    expect((await world.get(host, '/about.html?x=1')).headers.location).toBe('/about?x=1')
    expect((await world.get(host, '/docs')).headers.location).toBe('/docs/')
    const lost = await world.get(host, '/nope')
    expect([lost.status, lost.text, lost.headers.etag]).toEqual([404, '<h1>lost</h1>', undefined])
    expect(lost.headers['x-everywhere']).toBe('yes')
    expect((await world.get(host, '/.env')).status).toBe(404)
    expect((await world.get(host, '/.well-known/security.txt')).status).toBe(200)
  })
})

describe('what cannot be shown says why', () => {
  test('an unknown host is told that it is unknown', async () => {
    const { status, text, headers } = await world.get('nobody.example.test:8080', '/')
    expect(status).toBe(404)
    expect(text).toContain('There is no site at <b>nobody.example.test</b>')
    expect(headers['cache-control']).toBe('no-store')
  })

  test('a project without production says that nothing is deployed yet', async () => {
    await world.newProject('fresh')
    await until(() => world.edge.snapshot!.find('fresh.localhost'))
    const answer = await world.get('fresh.localhost', '/')
    expect(answer.status).toBe(404)
    expect(answer.text).toContain('Nothing deployed yet')
  })

  test('other methods are 405 with Allow', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE']) {
      const { status, headers } = await world.get(host, '/', {}, method)
      expect([status, headers.allow]).toEqual([405, 'GET, HEAD'])
    }
  })

  test('a deployment whose manifest is gone is 500, and one whose file is gone too; the next request works', async () => {
    await world.newProject('broken')
    const { id, host } = await world.deploy('broken', { 'index.html': 'one', 'big.bin': randomBytes(300_000) })
    const manifest = (await world.artifacts.read(id))!
    await until(() => world.edge.snapshot!.find(host))
    await world.artifacts.remove(id)
    expect((await world.get(host, '/')).status).toBe(500)
    await world.artifacts.publish(id, manifest)
    await rm(world.artifacts.pathOf(manifest.files['index.html']!.hash))
    await rm(world.artifacts.pathOf(manifest.files['big.bin']!.hash))
    expect((await world.get(host, '/')).status).toBe(500)
    expect((await world.get(host, '/big.bin')).status).toBe(500)
    expect((await world.get(host, '/nope')).status).toBe(404)
  })

  test('a damaged file is 500 until it is repaired; its compressed copy is answered by the plain file', async () => {
    const text = 'the text of a page\n'.repeat(100)
    await world.newProject('damaged')
    const { id, host } = await world.deploy('damaged', {
      'index.html': text,
      'a.txt': 'small',
      'b.bin': randomBytes(300_000),
    })
    await until(() => world.edge.snapshot!.find(host))
    const { files } = (await world.artifacts.read(id))!
    const pathOf = (name: string, encoding?: 'br') => world.artifacts.pathOf(files[name]!.hash, encoding)
    const [page, small, large] = [pathOf('index.html', 'br'), pathOf('a.txt'), pathOf('b.bin')]
    const contents = await Promise.all([small, large].map((path) => readFile(path)))
    await writeFile(page, '')
    await writeFile(small, 'smalk')
    await truncate(large, 1000)
    const compressed = await world.get(host, '/', { 'accept-encoding': 'br' })
    expect([compressed.status, compressed.headers['content-encoding'], compressed.text]).toEqual([200, undefined, text])
    for (const path of ['/a.txt', '/b.bin']) expect((await world.get(host, path)).status).toBe(500)
    const hashes = [`${files['index.html']!.hash}.br`, files['a.txt']!.hash, files['b.bin']!.hash]
    await until(async () => {
      const damaged = await world.artifacts.damaged()
      return hashes.every((hash) => damaged.includes(hash))
    })
    await writeFile(small, contents[0]!)
    await writeFile(large, contents[1]!)
    expect((await world.get(host, '/a.txt')).text).toBe('small')
    expect((await world.get(host, '/b.bin')).status).toBe(200)
  })

  test('a server project without servers is 502', async () => {
    const host = await world.site('server', {}, { kind: 'node' })
    expect((await world.get(host, '/')).status).toBe(502)
  })
})

test('requests and bytes are counted by class of status', async () => {
  const text = await world.edge.metrics.registry.metrics()
  for (const status of ['2xx', '3xx', '4xx', '5xx']) {
    expect(Number(new RegExp(`berth_edge_requests_total{status="${status}"} (\\d+)`).exec(text)?.[1])).toBeGreaterThan(
      0,
    )
  }
  expect(Number(/berth_edge_sent_bytes_total (\d+)/.exec(text)?.[1])).toBeGreaterThan(large.length)
})
