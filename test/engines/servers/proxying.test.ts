import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../helpers/until.ts'
import { startWorld, type World, withEachDriver } from './world.ts'

withEachDriver('a request passes to the server', (driver) => {
  let world: World
  beforeAll(async () => {
    world = await startWorld(driver)
    await world.deploy('site')
    world.show('site')
    await world.servers.ready('site')
  })
  afterAll(() => world.stop())

  /** Sends bytes as they are; returns what comes until the connection closes. */
  const raw = (bytes: string) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect(world.port, '127.0.0.1', () => socket.write(bytes))
      let text = ''
      socket.setEncoding('latin1').on('data', (chunk) => {
        text += chunk
      })
      socket.on('error', reject).on('close', () => resolve(text))
    })

  test('with its answer', async () => {
    expect(await world.get('/')).toMatchObject({ status: 200, text: 'hello from site' })
    expect(await world.get('/missing')).toMatchObject({ status: 404, text: 'no such page' })
    expect(await world.get('/', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' })
  })

  test('with its headers, but none that speak of one connection or that only we may say', async () => {
    const answer = await world.get('/headers?a=%2F&b', {
      headers: {
        ...{ host: 'shop.example', 'x-forwarded-for': '6.6.6.6', x_real_ip: '6.6.6.6', forwarded: 'for=6.6.6.6' },
        ...{ 'x-forwarded-proto': 'https', 'x-forwarded-host': 'evil.example', te: 'trailers', 'x-mine': 'kept' },
        ...{ connection: 'keep-alive, x-hop', 'x-hop': '1', 'proxy-authorization': 'secret', cookie: 'a=1' },
      },
    })
    expect(answer.status).toBe(201)
    expect(answer.headers['set-cookie']).toEqual(['a=1', 'b=2'])
    expect(answer.headers).toMatchObject({ 'x-public': 'yes', 'content-type': 'application/json' })
    expect(answer.headers).not.toHaveProperty('x-private')
    const seen = JSON.parse(answer.text) as { url: string; raw: string[] }
    expect(seen.url).toBe('/headers?a=%2F&b')
    const headers = new Map<string, string[]>()
    for (let i = 0; i < seen.raw.length; i += 2) {
      const name = seen.raw[i]!.toLowerCase()
      headers.set(name, [...(headers.get(name) ?? []), seen.raw[i + 1]!])
    }
    expect(Object.fromEntries(headers)).toEqual({
      host: ['shop.example'],
      'x-mine': ['kept'],
      cookie: ['a=1'],
      'x-forwarded-for': ['127.0.0.1'],
      'x-forwarded-host': ['shop.example'],
      'x-forwarded-proto': ['http'],
      connection: ['keep-alive'],
    })
  })

  test('with the host of an address in its first line', async () => {
    const text = await raw(
      'GET http://real.example/headers HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n',
    )
    expect(text).toContain('"url":"/headers"')
    expect(text).toContain('"Host","real.example"')
    expect(text).not.toContain('other.example')
  })

  test('with a body of known and of unknown length, both ways', async () => {
    const body = randomBytes(8 << 20)
    const known = await world.get('/echo', { method: 'POST', body, headers: { 'content-length': body.length } })
    expect(Buffer.from(known.text, 'latin1').equals(body)).toBe(true)
    const chunked = await world.get('/echo', { method: 'PUT', body, headers: { 'transfer-encoding': 'chunked' } })
    expect(Buffer.from(chunked.text, 'latin1').equals(body)).toBe(true)
    expect((await world.get('/large?chunks=320')).text.length).toBe(320 * 64 * 1024)
    const none = await world.get('/headers', { method: 'POST' })
    expect(none.text).toContain('"Content-Length","0"')
  })

  test('as a stream: each part arrives while the rest is not yet sent', async () => {
    const sent = request({ port: world.port, host: '127.0.0.1', path: '/echo', method: 'POST' })
    sent.write('first')
    const answer = await new Promise<NodeJS.ReadableStream>((resolve) => sent.on('response', resolve))
    const parts = answer[Symbol.asyncIterator]()
    expect(String((await parts.next()).value)).toBe('first')
    sent.end('second')
    expect(String((await parts.next()).value)).toBe('second')
  })

  test('and the head of its answer does not wait for a body', async () => {
    const sent = request({ port: world.port, host: '127.0.0.1', path: '/events' }).end()
    sent.on('error', () => {})
    const status = await new Promise((resolve) => sent.on('response', (answer) => resolve(answer.statusCode)))
    expect(status).toBe(200)
    sent.destroy()
  })

  test('and ends there when the visitor leaves', async () => {
    const before = Number((await world.get('/aborted')).text)
    for (const path of ['/hang', '/endless']) {
      const sent = request({ port: world.port, host: '127.0.0.1', path })
      sent.on('error', () => {})
      const begun = path === '/endless' && once(sent, 'response')
      const hanging = Number((await world.get('/hanging')).text)
      sent.end()
      if (begun) await begun
      else await until(async () => Number((await world.get('/hanging')).text) > hanging)
      sent.destroy()
    }
    await until(async () => Number((await world.get('/aborted')).text) === before + 2)
  })

  test('but not for longer than it may stall: 504', async () => {
    // Of its own: on a busy machine the others may take as long.
    const hasty = await startWorld(driver, { stallMs: 500 })
    await hasty.deploy('site')
    hasty.show('site')
    expect(await hasty.get('/hang')).toMatchObject({ status: 504, headers: { 'cache-control': 'no-store' } })
    await hasty.stop()
  })

  test('and an answer that comes before its body was read arrives', async () => {
    const body = Buffer.alloc(200_000)
    const options = { method: 'POST', body, headers: { 'content-length': body.length }, agent: false as const }
    expect(await world.get('/early', options)).toMatchObject({ status: 413, text: 'too large' })
  })

  test('again on a new connection when the idle one was closed meanwhile', async () => {
    const program = `
      import { createServer } from 'node:net'
      // Closes each connection when its second request comes, as if its idle time were just over.
      createServer((socket) => {
        let count = 0
        socket.on('error', () => {})
        socket.on('data', () => {
          if (++count > 1) return socket.destroy()
          socket.write('HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nok')
        })
      }).listen(process.env.PORT)`
    await world.deploy('stale', program)
    world.show('stale')
    try {
      for (let i = 0; i < 10; i++) expect((await world.get('/')).text).toBe('ok')
      for (let i = 0; i < 10; i++) expect((await world.get('/', { method: 'POST', body: '' })).text).toBe('ok')
    } finally {
      world.show('site')
    }
  })

  test('and a server that dies in it is a 502, or a cut answer', async () => {
    await world.deploy('fragile')
    world.show('fragile')
    try {
      await world.servers.ready('fragile')
      expect(await world.get('/crash')).toMatchObject({ status: 502 })
      await expect(world.get('/half')).rejects.toMatchObject({ code: 'ECONNRESET' })
    } finally {
      world.show('site')
    }
  })
})
