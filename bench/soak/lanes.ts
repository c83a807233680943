// The requests of the soak: API reads and writes, pages over HTTP and HTTPS, DNS over UDP and TCP, deployments and streams.
import { randomInt, randomUUID } from 'node:crypto'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { connect } from 'node:net'
import { createDnsClient, packet } from '../dns/client.ts'
import type { Query } from '../dns/mix.ts'
import { commit } from './site.ts'

export type World = {
  apiPort: number
  token: string
  edgePort: number
  httpsPort: number
  dnsPort: number
  /** A verified domain with a certificate, which serves the site. */
  domain: string
  /** One of the platform's own hosts, which serves the site over HTTP. */
  host: string
  project: string
  bare: string
  paths: string[]
}

export type Lane = { name: string; perSecond: number; once(number: number): Promise<unknown> }

const acceptable = ['br, gzip', 'gzip', 'identity']
const timeoutMs = 60_000

export async function lanesOf(world: World, signal: AbortSignal): Promise<{ lanes: Lane[]; close(): void }> {
  const { apiPort, edgePort, httpsPort, dnsPort, domain, host, project, paths } = world
  const agent = new Agent({ keepAlive: true, maxSockets: 128 })
  const pages = new Agent({ keepAlive: true, maxSockets: 128 })
  const secure = new SecureAgent({ keepAlive: true, maxSockets: 64, rejectUnauthorized: false })
  const dnsClient = await createDnsClient(dnsPort)
  const one = <T>(list: readonly T[]) => list[randomInt(list.length)]!

  const call = async <T>(method: string, path: string, body?: object | string, expected = [200, 201, 202, 204]) => {
    const text = typeof body === 'object' ? JSON.stringify(body) : body
    const type = typeof body === 'string' ? 'text/dns' : 'application/json'
    const answer = await read(
      request({
        host: '127.0.0.1',
        port: apiPort,
        method,
        path: `/api${path}`,
        agent,
        timeout: timeoutMs,
        headers: {
          authorization: `Bearer ${world.token}`,
          ...(text !== undefined && { 'content-type': type, 'content-length': String(Buffer.byteLength(text)) }),
          ...(method === 'POST' && { 'idempotency-key': randomUUID() }),
          ...(path.endsWith('/zone') && { 'if-match': '*' }),
        },
      }),
      text,
    )
    if (!expected.includes(answer.status))
      throw new Error(`${method} ${path}: ${answer.status} ${answer.body.slice(0, 300)}`)
    return (answer.body ? JSON.parse(answer.body) : null) as T
  }

  const reads = [
    '/projects',
    '/deployments',
    '/tickets',
    '/events?limit=50',
    '/domains',
    '/account',
    '/tokens',
    '/webhooks',
    `/dns/${domain}/records?limit=100`,
    `/projects/${project}`,
  ]
  const tickets: string[] = []

  /** Creates, changes and deletes a record. */
  async function record(): Promise<void> {
    const name = `r${randomInt(1e9)}`
    const { id } = await call<{ id: string }>('POST', `/dns/${domain}/records`, { type: 'A', name, value: '192.0.2.7' })
    await call('PATCH', `/dns/${domain}/records/${id}`, { value: '192.0.2.8' })
    await call('DELETE', `/dns/${domain}/records/${id}`)
  }

  /** Opens a ticket with replies, closed some tickets later. */
  async function ticket(number: number): Promise<void> {
    const made = { subject: `Query ${number}`, message: 'word '.repeat(randomInt(5, 500)) }
    const { id } = await call<{ id: string }>('POST', '/tickets', made)
    await call('POST', `/tickets/${id}/messages`, { message: 'more '.repeat(randomInt(5, 100)) })
    tickets.push(id)
    if (tickets.length > 100) await call('PATCH', `/tickets/${tickets.shift()}`, { status: 'CLOSED' })
  }

  const writes = [
    record,
    ticket,
    (number: number) => call('PUT', `/projects/${project}/env/V${number % 50}`, { value: `v${number}` }),
    (number: number) => call('PATCH', `/projects/${project}`, { settings: { spaFallback: number % 2 === 0 } }),
    async () => {
      const { id } = await call<{ id: string }>('POST', '/tokens', { name: 'soak', scopes: ['dns:read'] })
      await call('DELETE', `/tokens/${id}`)
    },
  ]

  /** Changes ten records of a zone large enough for the thread of large zones. */
  async function zoneFile(number: number): Promise<void> {
    const lines = Array.from({ length: 600 }, (_, at) => `n${at} 300 IN A 192.0.2.${at < 10 ? number % 250 : at % 250}`)
    await call('PUT', '/dns/large.test/zone', `${lines.join('\n')}\n`)
  }

  const built: string[] = []
  async function deployment(number: number): Promise<void> {
    await commit(world.bare, { [`post-${number % 40}.html`]: `<h1>${randomUUID()}</h1>`.repeat(randomInt(10, 3000)) })
    const { id } = await call<{ id: string }>('POST', '/deployments', { project })
    for (let tries = 0; tries < 20; tries++) {
      const { state } = await call<{ state: string }>('GET', `/deployments/${id}?wait=30`)
      if (state === 'BUILDING') continue
      if (state !== 'READY') throw new Error(`the deployment is ${state}`)
      built.push(id)
      if (built.length > 20) await call('DELETE', `/deployments/${built.shift()}`)
      return
    }
    throw new Error('the deployment does not end')
  }

  async function page(number: number): Promise<void> {
    const headers: Record<string, string> = { host, 'accept-encoding': one(acceptable) }
    if (number % 50 === 0) headers.range = 'bytes=0-99'
    const path = number % 20 === 0 ? `/missing-${number}` : one(paths)
    const sent = () => request({ host: '127.0.0.1', port: edgePort, path, headers, agent: pages, timeout: timeoutMs })
    expectStatus(await readAgain(sent), number % 20 === 0 ? [404] : [200, 206], path)
  }

  async function securePage(number: number): Promise<void> {
    const path = one(paths)
    const accept = one(acceptable)
    const sent = () =>
      secureRequest({
        host: '127.0.0.1',
        port: httpsPort,
        servername: domain,
        rejectUnauthorized: false,
        path,
        headers: { host: domain, 'accept-encoding': accept },
        // Every fourth visitor is new and needs a handshake.
        agent: number % 4 === 0 ? false : secure,
        timeout: timeoutMs,
      })
    expectStatus(await readAgain(sent), [200], path)
  }

  /** A visit over HTTP/2: a connection with some streams. */
  function http2Visit(): Promise<void> {
    return new Promise((resolve, reject) => {
      const session = connectHttp2(`https://127.0.0.1:${httpsPort}`, { servername: domain, rejectUnauthorized: false })
      session.on('error', reject)
      let open = 5
      for (let sent = 0; sent < 5; sent++) {
        const stream = session.request({ ':path': one(paths), ':authority': domain, 'accept-encoding': 'br' })
        stream.on(
          'response',
          (headers) => headers[':status'] === 200 || reject(new Error(`HTTP/2 ${headers[':status']}`)),
        )
        stream.on('error', reject)
        stream.resume()
        stream.on('close', () => {
          if (--open > 0) return
          session.close()
          resolve()
        })
      }
    })
  }

  /** Some existing names, and some that were never queried. */
  function question(number: number): { name: string; type: Query['type'] } {
    if (number % 5 === 0) return { name: `x${randomInt(1e9)}.${domain}`, type: 'A' }
    return { name: number % 3 === 0 ? domain : `n${randomInt(600)}.large.test`, type: number % 7 === 0 ? 'AAAA' : 'A' }
  }

  async function udp(number: number): Promise<void> {
    const { name, type } = question(number)
    // Resolvers retry, too.
    const answer =
      (await dnsClient.query(name, type, 5_000)) ??
      (await dnsClient.query(name, type, 5_000)) ??
      (await dnsClient.query(name, type, 10_000))
    if (!answer?.authoritative) throw new Error(`${name} ${type}: ${JSON.stringify(answer)}`)
  }

  function tcp(number: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const { name, type } = question(number)
      const socket = connect(dnsPort, '127.0.0.1')
      const query = packet(number & 0xffff, name, type)
      const framed = Buffer.alloc(2 + query.length)
      framed.writeUInt16BE(query.length, 0)
      query.copy(framed, 2)
      socket.setTimeout(timeoutMs, () => socket.destroy(new Error('no answer over TCP')))
      socket.on('error', reject)
      socket.on('close', () => reject(new Error('closed before the answer')))
      socket.on('data', () => {
        resolve()
        socket.end()
      })
      socket.write(framed)
    })
  }

  /** Reads the event stream for some seconds. */
  async function stream(): Promise<void> {
    const left = AbortSignal.any([signal, AbortSignal.timeout(randomInt(2_000, 15_000))])
    const headers = { accept: 'text/event-stream', authorization: `Bearer ${world.token}` }
    try {
      const response = await fetch(`http://127.0.0.1:${apiPort}/api/events`, { headers, signal: left })
      if (response.status !== 200) throw new Error(`the stream answered ${response.status}`)
      for await (const _ of response.body!);
      throw new Error('the stream ended before its reader')
    } catch (error) {
      if (!left.aborted) throw error
    }
  }

  return {
    lanes: [
      { name: 'api read', perSecond: 120, once: () => call('GET', one(reads)) },
      { name: 'api write', perSecond: 20, once: (number) => writes[number % writes.length]!(number) },
      { name: 'api zone', perSecond: 0.2, once: zoneFile },
      { name: 'deploy', perSecond: 0.1, once: deployment },
      { name: 'stream', perSecond: 2, once: stream },
      { name: 'page http', perSecond: 150, once: page },
      { name: 'page https', perSecond: 40, once: securePage },
      { name: 'page http2', perSecond: 3, once: http2Visit },
      { name: 'dns udp', perSecond: 1_000, once: udp },
      { name: 'dns tcp', perSecond: 10, once: tcp },
    ],
    close() {
      for (const one of [agent, pages, secure]) one.destroy()
      dnsClient.close()
    },
  }
}

type Answer = { status: number; body: string }

/** A server may close a kept connection while a request is on its way; browsers then retry. */
async function readAgain(send: () => ReturnType<typeof request>): Promise<Answer> {
  const first = send()
  return read(first).catch((error) => {
    if (first.reusedSocket) return read(send())
    throw error
  })
}

function read(sent: ReturnType<typeof request>, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    sent.on('response', async (response: IncomingMessage) => {
      try {
        resolve({ status: response.statusCode!, body: Buffer.concat(await response.toArray()).toString() })
      } catch (error) {
        reject(error)
      }
    })
    sent.on('timeout', () => sent.destroy(new Error('no answer in time')))
    sent.on('error', reject)
    sent.end(body)
  })
}

function expectStatus({ status }: Answer, expected: number[], path: string): void {
  if (!expected.includes(status)) throw new Error(`${path}: ${status}`)
}
