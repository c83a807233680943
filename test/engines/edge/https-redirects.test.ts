import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Config } from '../../../src/config.ts'
import { createEdge } from '../../../src/engines/edge/serve/server.ts'
import { changeProject } from '../../../src/services/projects/projects.ts'
import { closed } from '../../helpers/closed.ts'
import { until } from '../../helpers/until.ts'
import { serveCertificate, storeCertificate } from '../../tls/authority.ts'
import { type HttpsWorld, startHttpsWorld } from './https-world.ts'

let world: HttpsWorld
beforeAll(async () => {
  world = await startHttpsWorld()
  await world.site('shop', { 'index.html': 'shop', 'page.html': 'page' })
  await world.secure('shop', 'shop.test', ['shop.test', 'www.shop.test'])
  await world.site('other', { 'index.html': 'other' })
  await world.secure('other', 'other.test')
})
afterAll(() => world.stop())

describe('HTTP', () => {
  test('leads to HTTPS with 308, path and query kept, once the domain has a certificate', async () => {
    const answer = await world.get('shop.test', '/page?a=1&b=%20')
    expect(answer).toMatchObject({ status: 308, text: '' })
    expect(answer.headers.location).toBe(`https://shop.test:${world.httpsPort}/page?a=1&b=%20`)
    expect((await world.get('www.shop.test:80', '//evil.test/..')).headers.location).toBe(
      `https://www.shop.test:${world.httpsPort}//evil.test/..`,
    )
    expect((await world.get('shop.test', '/', {}, 'POST')).status).toBe(308)
  })

  test('is answered as it came before there is a certificate, after it ran out, and at hosts of the platform', async () => {
    await world.site('plain', { 'index.html': 'plain' })
    await world.attach('plain', 'plain.test')
    await until(async () => (await world.get('plain.test', '/')).text === 'plain')
    await serveCertificate(world.db, world.vault, 'plain.test', await world.authority.issue(['plain.test'], -1_000))
    await until(() =>
      world.handshake('plain.test').then(
        () => false,
        ({ code }) => code === 'CERT_HAS_EXPIRED',
      ),
    )
    expect(await world.get('plain.test', '/')).toMatchObject({ status: 200, text: 'plain' })
    // www is served beside the domain, but its certificate does not have it.
    expect(await world.get('www.other.test', '/')).toMatchObject({ status: 200, text: 'other' })
    expect(await world.get('shop.localhost', '/')).toMatchObject({ status: 200, text: 'shop' })
  })

  test('shows an authority what it wants to see, at any host, and is never redirected there', async () => {
    const path = '/.well-known/acme-challenge/'
    await world.db.acmeOrder.create({ data: { subject: 'dom_x', names: ['x.test'], directory: 'test' } })
    const challenge = { subject: 'dom_x', name: 'x.test' }
    const data = { ...challenge, id: 'chl_1', type: 'http-01', token: 'tok-en_1', value: 'tok-en_1.thumb' }
    await world.db.acmeChallenge.create({ data })
    await world.db.acmeChallenge.create({ data: { ...data, id: 'chl_2', type: 'dns-01', token: 'dns' } })
    for (const host of ['x.test', 'shop.test', 'shop.localhost']) {
      const answer = await until(async () => {
        const answer = await world.get(host, `${path}tok-en_1`)
        return answer.status === 200 && answer
      })
      expect(answer).toMatchObject({ text: 'tok-en_1.thumb', headers: { 'content-type': 'text/plain' } })
    }
    // What is not a token of ours is for the site to answer.
    expect((await world.get('shop.test', `${path}unknown`)).status).toBe(404)
    expect((await world.get('x.test', `${path}dns`)).status).toBe(404)
    await world.db.acmeChallenge.delete({ where: { id: 'chl_1' } })
    await until(async () => (await world.get('x.test', `${path}tok-en_1`)).status === 404)
  })
})

test('browsers are told to stay with HTTPS where the project wants it: at its domains, encrypted, and nowhere else', async () => {
  const header = async (host: string) => (await world.fetch(host, '/')).headers['strict-transport-security']
  expect(await header('shop.test')).toBeUndefined()
  const change = (hsts: boolean) =>
    changeProject(world.db, world.urls, world.actor, {
      key: 'shop',
      input: { settings: { hsts } },
      precondition: () => {},
    })
  await change(true)
  await until(async () => (await header('shop.test')) === 'max-age=31536000')
  expect(await header('www.shop.test')).toBe('max-age=31536000')
  expect(await header('other.test')).toBeUndefined()
  for (const path of ['/nope', '/page']) {
    const { headers } = await world.fetch('shop.test', path)
    expect(headers['strict-transport-security']).toBe('max-age=31536000')
  }
  expect((await world.get('shop.test', '/')).headers).not.toHaveProperty('strict-transport-security')
  expect((await world.get('shop.localhost', '/')).headers).not.toHaveProperty('strict-transport-security')
  await change(false)
  await until(async () => (await header('shop.test')) === undefined)
})

describe('another edge on the same database', () => {
  const start = (config: Partial<Config>, ports: object) => {
    const { db, notifications, artifacts, vault } = world
    const edge = { ...world.config.edge, ...ports }
    return createEdge({ config: { ...world.config, ...config, edge }, db, notifications, artifacts, vault, log })
  }
  const log = pino({ level: 'silent' })
  const isOpen = (port: number) =>
    new Promise((resolve) => {
      const socket = connectTcp(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })

  test('leads to HTTPS at the platform’s hosts in production, at the port the world sees', async () => {
    await storeCertificate(world.db, world.vault, await world.authority.issue(['shop.localhost']))
    const edge = start({ production: true }, {})
    const { port } = await edge.listen()
    const visit = async (host: string) => {
      const socket = connectTcp(port, '127.0.0.1')
      socket.write(`GET /page HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      return Buffer.concat(await socket.toArray()).toString()
    }
    expect(await visit('shop.localhost')).toContain('location: https://shop.localhost/page\r\n')
    expect(await visit('shop.test')).toContain('location: https://shop.test/page\r\n')
    expect(await visit('other.localhost')).toMatch(/^HTTP\/1.1 404 /)
    await edge.close()
  })

  test('does not wait, when it stops, for connections on which nothing is under way', async () => {
    const edge = start({}, {})
    const { httpsPort } = await edge.listen()
    const ends: Promise<unknown>[] = []
    // Nothing sent, a request answered, one that took the long way, a session of HTTP/2, and a handshake half done.
    const long = 'GET / HTTP/1.1\r\nHost: shop.test\r\nRange: bytes=0-1\r\n\r\n'
    for (const bytes of ['', 'GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n', long]) {
      const socket = await world.handshake('shop.test', { ca: world.authority.rootPem, port: httpsPort! })
      if (bytes !== '') {
        socket.write(bytes)
        expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 20/)
      }
      ends.push(closed(socket.resume()))
    }
    const session = connectHttp2(`https://shop.test:${httpsPort}`, {
      createConnection: () =>
        connectTls({ port: httpsPort!, servername: 'shop.test', ca: world.authority.rootPem, ALPNProtocols: ['h2'] }),
    })
    const stream = session.request({ ':path': '/' })
    await once(stream.resume(), 'end')
    ends.push(closed(session))
    // The time that answers under way get would end them too, so it does not pass.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      await Promise.all([edge.close(), ...ends])
    } finally {
      vi.useRealTimers()
    }
  })

  test('that finds one of its ports taken leaves the other one closed', async () => {
    const probe = createTcpServer().listen(0, '127.0.0.1')
    await once(probe, 'listening')
    const { port: free } = probe.address() as AddressInfo
    await new Promise((resolve) => probe.close(resolve))
    for (const ports of [
      { httpPort: world.port, httpsPort: free },
      { httpPort: free, httpsPort: world.httpsPort },
    ]) {
      await expect(start({}, ports).listen()).rejects.toMatchObject({ code: 'EADDRINUSE' })
      expect(await isOpen(free)).toBe(false)
    }
  })
})
