// A small internet on one machine: a resolver, the servers of .com and whatever servers a test adds, each a real socket.
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { nameOctets, types } from '../nameserver/packets.ts'

export type Line = [owner: string, type: 'A' | 'NS' | 'CNAME' | 'SOA' | 'TXT' | 'DS', data: string]
export type Said = {
  code?: 'NXDOMAIN' | 'SERVFAIL' | 'REFUSED'
  aa?: boolean
  truncated?: boolean
  answer?: Line[]
  authority?: Line[]
}
/** What a server says to a question; null: nothing; octets: those, behind the id and the question. */
export type Behaviour = (name: string, type: string, tcp: boolean) => Said | Buffer | null

const codes = { NXDOMAIN: 3, SERVFAIL: 2, REFUSED: 5 }
const typeNames = new Map(Object.entries(types).map(([name, number]) => [number, name]))

/** The TTL of every DS record, in seconds. */
export const dsTtl = 7_200

function rdata(type: Line[1], data: string): Buffer {
  if (type === 'A') return Buffer.from(data.split('.').map(Number))
  if (type === 'TXT') {
    const parts = Buffer.from(data, 'latin1')
      .toString('latin1')
      .match(/.{1,255}/gs) ?? ['']
    return Buffer.concat(parts.flatMap((part) => [Buffer.from([part.length]), Buffer.from(part, 'latin1')]))
  }
  if (type === 'DS') {
    const [tag = '', algorithm = '', kind = '', digest = ''] = data.split(' ')
    const fields = Buffer.from([Number(tag) >> 8, Number(tag) & 0xff, Number(algorithm), Number(kind)])
    return Buffer.concat([fields, Buffer.from(digest, 'hex')])
  }
  if (type === 'SOA') return Buffer.concat([nameOctets('ns.x'), nameOctets('h.x'), Buffer.alloc(20)])
  return nameOctets(data)
}

function record([owner, type, data]: Line): Buffer {
  const octets = rdata(type, data)
  const head = Buffer.alloc(10)
  head.writeUInt16BE(types[type]!, 0)
  head.writeUInt16BE(1, 2)
  if (type === 'DS') head.writeUInt32BE(dsTtl, 4)
  head.writeUInt16BE(octets.length, 8)
  return Buffer.concat([nameOctets(owner), head, octets])
}

function respond(query: Buffer, behave: Behaviour, tcp: boolean): Buffer | null {
  const labels: string[] = []
  let at = 12
  while (query[at]! > 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + query[at]!))
    at += 1 + query[at]!
  }
  const question = query.subarray(12, at + 5)
  const said = behave(labels.join('.').toLowerCase(), typeNames.get(query.readUInt16BE(at + 1)) ?? '?', tcp)
  if (said === null) return null
  const header = Buffer.alloc(12)
  query.copy(header, 0, 0, 2)
  header[2] = 0x80
  header.writeUInt16BE(1, 4)
  if (Buffer.isBuffer(said)) {
    header.writeUInt16BE(1, 6)
    return Buffer.concat([header, question, said])
  }
  const { answer = [], authority = [] } = said
  header[2] = 0x80 | (said.aa === false ? 0 : 4) | (said.truncated ? 2 : 0)
  header[3] = said.code ? codes[said.code] : 0
  header.writeUInt16BE(answer.length, 6)
  header.writeUInt16BE(authority.length, 8)
  return Buffer.concat([header, question, ...[...answer, ...authority].map(record)])
}

export type FakeServer = { address: string; asked: string[]; behave: Behaviour }

export type Internet = {
  resolver: string
  reach(address: string): { host: string; port: number }
  /** The servers of .com; .com delegates what is in here. */
  top: FakeServer[]
  delegations: Map<string, string[]>
  /** DS records that .com has, by name. */
  ds: Map<string, string[]>
  /** Zones that the resolver knows, with the names of their nameservers. */
  zones: Map<string, string[]>
  addresses: Map<string, string[]>
  /** What the resolver does instead of what it knows. */
  breakResolver(behave: Behaviour | null): void
  addServer(name: string, behave: Behaviour): Promise<FakeServer>
  /** Puts a server that is there already at an address. */
  place(name: string, address: string, port: number): void
  /** A zone on `count` servers of its own, delegated by .com: what it holds, by name and type. */
  addZone(zone: string, count: number, lines: Line[]): Promise<FakeServer[]>
  stop(): Promise<void>
}

/** What an honest server of a zone says, with the delegations that it knows below it. */
export function honest(
  zone: string,
  lines: () => Line[],
  cuts: () => Map<string, string[]> = () => new Map(),
  ds: () => Map<string, string[]> = () => new Map(),
): Behaviour {
  return (name, type) => {
    if (name !== zone && !name.endsWith(`.${zone}`)) return { code: 'REFUSED', aa: false }
    for (const [cut, hosts] of cuts()) {
      if (name !== cut && !name.endsWith(`.${cut}`)) continue
      if (name === cut && type === 'DS') {
        const answer = (ds().get(cut) ?? []).map((text): Line => [cut, 'DS', text])
        return answer.length > 0 ? { answer } : { authority: [[zone, 'SOA', '']] }
      }
      return { aa: false, authority: hosts.map((host): Line => [cut, 'NS', host]) }
    }
    const here = lines().filter(([owner]) => owner === name)
    const answer = here.filter(([, kind]) => kind === type || kind === 'CNAME')
    if (answer.length > 0) return { answer }
    const exists = lines().some(([owner]) => owner === name || owner.endsWith(`.${name}`))
    return { ...(!exists && { code: 'NXDOMAIN' as const }), authority: [[zone, 'SOA', '']] }
  }
}

export async function startInternet(): Promise<Internet> {
  const closers: (() => void)[] = []
  const ports = new Map<string, number>()
  const addresses = new Map<string, string[]>()
  const zones = new Map<string, string[]>()
  const delegations = new Map<string, string[]>()
  const ds = new Map<string, string[]>()
  let broken: Behaviour | null = null
  let servers = 0

  async function serve(behave: Behaviour): Promise<number> {
    for (;;) {
      const udp: Socket = createSocket('udp4')
      udp.bind(0, '127.0.0.1')
      await once(udp, 'listening')
      const { port } = udp.address()
      const tcp: Server = createServer((connection) => {
        connection.on('error', () => {})
        connection.once('data', (data) => {
          const answer = respond(data.subarray(2), behave, true)
          const length = Buffer.alloc(2)
          length.writeUInt16BE(answer?.length ?? 0)
          if (answer) connection.end(Buffer.concat([length, answer]))
        })
      })
      const listening = once(tcp, 'listening')
      tcp.listen(port, '127.0.0.1')
      // The same number may be taken for TCP by somebody else.
      if (await listening.then(() => true).catch(() => false)) {
        udp.on('message', (query, from) => {
          const answer = respond(query, behave, false)
          if (answer) udp.send(answer, from.port, from.address)
        })
        closers.push(
          () => udp.close(),
          () => void tcp.close(),
        )
        return port
      }
      udp.close()
    }
  }

  const resolverPort = await serve((name, type, tcp) => {
    if (broken) return broken(name, type, tcp)
    if (type === 'A') {
      const found = addresses.get(name)
      return found ? { aa: false, answer: found.map((address): Line => [name, 'A', address]) } : { code: 'NXDOMAIN' }
    }
    const labels = name.split('.')
    const zone = labels.map((_, skip) => labels.slice(skip).join('.')).find((candidate) => zones.has(candidate)) ?? ''
    if (type === 'SOA') {
      return zone === name ? { answer: [[name, 'SOA', '']] } : { code: 'NXDOMAIN', authority: [[zone, 'SOA', '']] }
    }
    const hosts = type === 'NS' ? zones.get(name) : undefined
    return { aa: false, answer: (hosts ?? []).map((host): Line => [name, 'NS', host]) }
  })

  const internet: Internet = {
    resolver: `127.0.0.1:${resolverPort}`,
    reach: (address) => ({ host: '127.0.0.1', port: ports.get(address) ?? 1 }),
    top: [],
    delegations,
    ds,
    zones,
    addresses,
    breakResolver(behave) {
      broken = behave
    },
    place(name, address, port) {
      addresses.set(name, [address])
      ports.set(address, port)
    },
    async addServer(name, behave) {
      const address = `198.51.100.${++servers}`
      const server: FakeServer = { address, asked: [], behave }
      const port = await serve((asked, type, tcp) => {
        server.asked.push(`${asked} ${type}`)
        return server.behave(asked, type, tcp)
      })
      internet.place(name, address, port)
      return server
    },
    async addZone(zone, count, lines) {
      const hosts = Array.from({ length: count }, (_, index) => `ns${index + 1}.${zone}`)
      delegations.set(zone, hosts)
      zones.set(zone, hosts)
      const all = (): Line[] => [...hosts.map((host): Line => [zone, 'NS', host]), ...lines]
      return Promise.all(hosts.map((host) => internet.addServer(host, honest(zone, all))))
    },
    async stop() {
      for (const close of closers) close()
    },
  }
  const topHosts = ['a.registry.net', 'b.registry.net', 'c.registry.net']
  zones.set('com', topHosts)
  const behave = honest(
    'com',
    () => [['com', 'NS', topHosts[0]!]],
    () => delegations,
    () => ds,
  )
  internet.top = await Promise.all(topHosts.map((host) => internet.addServer(host, behave)))
  return internet
}
