// A sandbox's HTTP proxy on a unix socket, one per run, for listed or all public hosts.
import type { LookupAddress } from 'node:dns'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect, type LookupFunction, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Network } from '../processes/command.ts'
import { type Boundary, egressRules, readTarget, type Target } from './addresses.ts'

export type EgressProxy = { close(): Promise<void> }

// A build opens a few dozen. The limit protects the host's descriptors.
const MAX_CONNECTIONS = 256
const CONNECT_TIMEOUT_MS = 30_000
const partBytes = 64 << 10
const maxFree = 64
const maxWaiting = 64
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

type Refusal = { status: 400 | 403 | 502; text: string }
type Route = { to: Target; lookup: LookupFunction }

export async function openEgress(
  socketPath: string,
  network: Network,
  boundary: Boundary,
  lookup: (host: string) => Promise<LookupAddress[]>,
): Promise<EgressProxy> {
  const decide = egressRules(network, boundary, { others: lookup })
  const sockets = new Set<Duplex>()
  const track = (socket: Duplex) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
  }

  async function route(to: Target | undefined): Promise<Route | Refusal> {
    if (to === undefined) return { status: 400, text: 'This proxy takes CONNECT host:port and http:// addresses.' }
    const destination = await decide(to).catch((error: Error) => error)
    if (destination instanceof Error) return { status: 502, text: `${to.host} was not found: ${destination.message}` }
    if ('refused' in destination) return { status: 403, text: destination.refused }
    const { addresses } = destination
    const lookup: LookupFunction = (_host, options, done) =>
      options.all ? done(null, addresses) : done(null, addresses[0]!.address, addresses[0]!.family)
    return { to, lookup }
  }

  async function tunnel(from: Duplex, head: Buffer, authority: string): Promise<void> {
    const way = await route(readTarget(authority, 443))
    if ('status' in way) return refuse(from, way)
    const to = connect({
      ...way.to,
      ...{ lookup: way.lookup, allowHalfOpen: true, noDelay: true, autoSelectFamily: true },
      onread: { buffer: takeMemory, callback: relay },
    })
    let waiting = 0
    let isPaused = false

    function relay(bytes: number, memory: Uint8Array): boolean {
      const isSmall = bytes < partBytes / 4
      const part = Buffer.from(memory.buffer, memory.byteOffset, bytes)
      // The queue is counted by bytes, but each part occupies its whole buffer, so small parts are copied.
      if (isSmall) giveMemory(memory)
      waiting++
      const goesOn = from.write(isSmall ? Buffer.from(part) : part, () => {
        if (!isSmall) giveMemory(memory)
        waiting--
        if (waiting > 0 || !isPaused) return
        isPaused = false
        to.resume()
      })
      isPaused = !goesOn || waiting >= maxWaiting
      return !isPaused
    }

    track(to)
    to.setTimeout(CONNECT_TIMEOUT_MS, () => to.destroy(new Error('no answer')))
    const notReached = (error: Error) => refuse(from, { status: 502, text: `${authority}: ${error.message}` })
    to.once('error', notReached)
    to.once('connect', () => {
      to.off('error', notReached)
      to.setTimeout(0)
      from.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      to.write(head)
      from.pipe(to)
    })
    to.once('end', () => from.end())
    from.once('close', () => to.destroy())
    to.once('close', () => to.readableEnded || from.destroy())
  }

  async function forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const url = URL.canParse(incoming.url ?? '') ? new URL(incoming.url!) : undefined
    const way = await route(url?.protocol === 'http:' ? readTarget(url.host, 80) : undefined)
    const answer = ({ status, text }: Refusal) => {
      if (outgoing.headersSent) return void outgoing.destroy()
      outgoing.writeHead(status, { 'content-type': 'text/plain', connection: 'close' }).end(`${text}\n`)
    }
    if ('status' in way) return answer(way)
    const headers = withoutHops(incoming.headers)
    const upstream = request({
      ...way.to,
      lookup: way.lookup,
      method: incoming.method,
      path: url!.pathname + url!.search,
      headers: { ...headers, host: url!.host },
      agent: false,
    })
    upstream.on('socket', track)
    upstream.on('response', (response) => {
      try {
        outgoing.writeHead(response.statusCode!, withoutHops(response.headers))
      } catch {
        // Node parses a status such as 099 but refuses to write it.
        response.destroy()
        return answer({ status: 502, text: `${url!.host} gave an answer that is not HTTP.` })
      }
      response.pipe(outgoing)
      response.on('error', () => outgoing.destroy())
    })
    upstream.on('error', (error) => answer({ status: 502, text: `${url!.host}: ${error.message}` }))
    outgoing.on('close', () => upstream.destroy())
    incoming.pipe(upstream)
  }

  const server = createServer((incoming, outgoing) => void forward(incoming, outgoing).catch(() => outgoing.destroy()))
  server.maxConnections = MAX_CONNECTIONS
  // Uploads and slow registries may take long. The run has its own deadline.
  server.requestTimeout = 0
  server.on('connection', (socket: Socket) => track(socket))
  server.on(
    'connect',
    (incoming, socket, head) => void tunnel(socket, head, incoming.url ?? '').catch(() => socket.destroy()),
  )
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(socketPath, resolve))
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

// Downloads are read into reused buffers. With new ones for each part, 50 MB kept the garbage collector of this large
// process busy all the time.
const free: Uint8Array[] = []
const takeMemory = () => free.pop() ?? Buffer.allocUnsafeSlow(partBytes)

function giveMemory(memory: Uint8Array): void {
  if (free.length < maxFree) free.push(memory)
}

function refuse(socket: Duplex, { status, text }: Refusal): void {
  if (!socket.writable) return
  const body = `${text}\n`
  // In the reason phrase too, the only part that npm and others show for a refused CONNECT.
  const phrase = text.replace(/[^\x20-\x7e]/g, '?')
  const headers = `Content-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close`
  socket.end(`HTTP/1.1 ${status} ${phrase}\r\n${headers}\r\n\r\n${body}`)
}

function withoutHops<Headers extends NodeJS.Dict<string | string[]>>(headers: Headers): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name))) as Headers
}
