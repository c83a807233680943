// What the present nameservers of a domain have: by a transfer, by questions, and never more than the bounds allow.
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { fetchZone } from '../../../src/dns/packet/axfr.ts'
import { createDiscovery } from '../../../src/engines/discovery/index.ts'
import { nameOctets } from '../../engines/nameserver/packets.ts'
import { type Served, serveZones } from '../../engines/nameserver/zones.ts'
import { type Internet, startInternet } from '../../engines/verification/internet.ts'
import { type Answer, startApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
let internet: Internet
let old: Served
let asked: string[] = []

beforeAll(async () => {
  internet = await startInternet()
  old = await serveZones({ rateLimit: null })
  const reach = (address: string) => {
    asked.push(address)
    return internet.reach(address)
  }
  api = await startApi({ DNS_RESOLVERS: internet.resolver }, { discover: discoverer({ reach }) })
  await api.newProject('site')
  internet.place('ns1.old.net', '198.51.100.71', old.port)
})
afterAll(async () => {
  await api.stop()
  await old.stop()
  await internet.stop()
})

function discoverer(options: Partial<Parameters<typeof createDiscovery>[0]>) {
  const config = {
    dnsResolvers: [internet.resolver],
    nameservers: ['ns1.berth.test', 'ns2.berth.test'],
    production: false,
  }
  return createDiscovery({ config, ...options })
}

/** A domain that is on the old nameservers with these records, and attached here. */
async function moving(name: string, lines: string, hosts = ['ns1.old.net']): Promise<void> {
  old.put(name, lines)
  internet.zones.set(name, hosts)
  const made = await api.call('POST', '/domains', { body: { project: 'site', name } })
  expect(made.status, made.text).toBe(201)
}
const discover = (name: string, more: object = {}): Promise<Answer> => api.call('POST', `/dns/${name}/discover`, more)
const shown = ({ body }: Answer): string[] =>
  body.changes.create.map(({ name, type, value }: Record<string, string>) => `${name} ${type} ${value}`).sort()

describe('by questions', () => {
  test('are found the records that mail needs, and what they lead to', async () => {
    const key = `"v=DKIM1; k=rsa; p=${'A'.repeat(300)}"`
    await moving(
      'mail.com',
      `@ MX 10 in.post.mail.com
      @ MX 20 backup.example.net
      in.post A 192.0.2.25
      @ TXT "v=spf1 include:_spf.mail.com a:out.mail.com include:_spf.example.net -all"
      _spf TXT "v=spf1 ip4:192.0.2.0/24 redirect=_deeper.mail.com"
      _deeper TXT "v=spf1 -all"
      out A 192.0.2.26
      out AAAA 2001:db8::26
      _dmarc TXT "v=DMARC1; p=reject"
      selector1._domainkey CNAME selector1.keys.example.net
      k2._domainkey TXT ${key}
      _imaps._tcp SRV 0 1 993 imap-host.mail.com
      imap-host A 192.0.2.27
      autodiscover CNAME autodiscover.example.net
      @ CAA 0 issue "ca.example"
      www CNAME web.mail.com
      web A 192.0.2.80
      blog NS ns.blogs.example.net
      unheardof A 192.0.2.99`,
    )
    const answer = await discover('mail.com')
    expect(answer.body).toMatchObject({
      method: 'questions',
      nameservers: ['ns1.old.net'],
      reason: null,
      truncated: false,
    })
    const found = shown(answer)
    for (const one of [
      '@ MX 10 in.post.mail.com',
      '@ MX 20 backup.example.net',
      'in.post A 192.0.2.25',
      '_spf TXT "v=spf1 ip4:192.0.2.0/24 redirect=_deeper.mail.com"',
      '_deeper TXT "v=spf1 -all"',
      'out A 192.0.2.26',
      'out AAAA 2001:db8::26',
      '_dmarc TXT "v=DMARC1; p=reject"',
      'selector1._domainkey CNAME selector1.keys.example.net',
      '_imaps._tcp SRV 0 1 993 imap-host.mail.com',
      'imap-host A 192.0.2.27',
      'autodiscover CNAME autodiscover.example.net',
      '@ CAA 0 issue "ca.example"',
      'www CNAME web.mail.com',
      'web A 192.0.2.80',
      'blog NS ns.blogs.example.net',
    ]) {
      expect(found, one).toContain(one)
    }
    expect(found.some((one) => one.startsWith('k2._domainkey TXT "v=DKIM1'))).toBe(true)
    // Nobody asks for a name that is not on the list and that nothing leads to.
    expect(found.join()).not.toContain('unheardof')
    expect(answer.body.notes).toHaveLength(1)
    expect(answer.body.questions).toBeLessThanOrEqual(600)
  })

  test('the batch takes the changes over, and nothing is lacking afterwards', async () => {
    const first = await discover('mail.com')
    const taken = await api.call('POST', '/dns/mail.com/records/batch', { body: first.body.changes })
    expect(taken.status, taken.text).toBe(200)
    expect((await discover('mail.com')).body).toMatchObject({ changes: { create: [] }, conflicts: [], notes: [] })
  })

  test('what cannot stand beside the records here is told, and not among the changes', async () => {
    await moving('beside.com', 'www CNAME web.example.net\n@ A 192.0.2.1\n@ TXT "x"')
    await api.call('POST', '/dns/beside.com/records', { body: { type: 'A', name: 'www', value: '192.0.2.5' } })
    await api.call('POST', '/dns/beside.com/records', { body: { type: 'ALIAS', name: '@', value: 'a.example.net' } })
    const { body } = await discover('beside.com')
    expect(body.conflicts.map(({ name, type }: Record<string, string>) => `${name} ${type}`).sort()).toEqual([
      '@ A',
      'www CNAME',
    ])
    // The old nameserver here is one of Berth's own, which answers for a host of the edge where there is none.
    expect(shown({ body } as Answer)).toEqual(['@ TXT "x"'])
  })

  test('what no zone may have is told too, so that the rest can be taken over', async () => {
    await moving('odd.com', '@ MX 10 mail.odd.com\n@ A 192.0.2.1\nmail CNAME host.example.net\n_dmarc TXT "v=DMARC1"')
    const answer = await discover('odd.com')
    expect(answer.body.conflicts.length).toBeGreaterThan(0)
    const taken = await api.call('POST', '/dns/odd.com/records/batch', { body: answer.body.changes })
    expect(taken.status, taken.text).toBe(200)
    expect(shown(answer)).toContain('_dmarc TXT "v=DMARC1"')
  })

  test('a wildcard is found as one, and what it covers is not listed by name', async () => {
    await moving(
      'wild.com',
      '* A 192.0.2.1\n* TXT "any"\nwww A 192.0.2.2\nmail A 192.0.2.1\n@ A 192.0.2.3\nk1._domainkey TXT "any"\nk1._domainkey TXT "own"',
    )
    expect(shown(await discover('wild.com'))).toEqual([
      '* A 192.0.2.1',
      '* TXT "any"',
      '@ A 192.0.2.3',
      'k1._domainkey TXT "any"',
      'k1._domainkey TXT "own"',
      'www A 192.0.2.2',
    ])
  })

  test('a domain below another is asked of the nameservers of that one', async () => {
    old.put('parent.com', 'shop A 192.0.2.1\nshop MX 10 mail.parent.com\nother A 192.0.2.2')
    internet.zones.set('parent.com', ['ns1.old.net'])
    await api.call('POST', '/domains', { body: { project: 'site', name: 'shop.parent.com' } })
    expect(shown(await discover('shop.parent.com'))).toEqual(['@ A 192.0.2.1', '@ MX 10 mail.parent.com'])
  })
})

describe('nobody is asked', () => {
  test('for a name that is in no DNS, or has no nameservers, or ours', async () => {
    for (const [name, hosts, reason] of [
      ['site.test', null, /not in the public DNS/],
      ['nobody.org', null, /no nameservers/],
      ['here.com', ['ns1.berth.test', 'ns2.berth.test'], /already/],
    ] as const) {
      if (hosts) internet.zones.set(name, [...hosts])
      await api.call('POST', '/domains', { body: { project: 'site', name } })
      const { status, body } = await discover(name)
      expect([status, body.method, body.questions]).toEqual([200, null, 0])
      expect(body.reason).toMatch(reason)
    }
  })

  test('at an address that is not public', async () => {
    await moving('inside.com', '@ A 192.0.2.1')
    asked = []
    const reach = (address: string) => {
      asked.push(address)
      return internet.reach(address)
    }
    for (const address of ['10.0.0.1', '127.0.0.1', '169.254.169.254', '192.168.1.1', '100.64.0.1']) {
      internet.addresses.set('ns1.inner.net', [address])
      internet.zones.set('inside.com', ['ns1.inner.net'])
      const found = await discoverer({ reach, allowPrivate: false })('inside.com', 'acc')
      expect(found).toMatchObject({ method: null, records: [] })
      expect(found.reason).toMatch(/public address/)
    }
    expect(asked).toEqual([])
  })

  test('in the name of somebody else', async () => {
    const stranger = await api.newAccount()
    asked = []
    expect((await discover('mail.com', { token: stranger.token })).status).toBe(404)
    expect((await discover('absent.com')).status).toBe(404)
    expect(asked).toEqual([])
  })
})

describe('an account', () => {
  test('discovers one domain at a time, and not without end', async () => {
    internet.zones.set('slow.com', ['ns1.slow.net'])
    await internet.addServer('ns1.slow.net', () => null)
    const tried = discoverer({ reach: internet.reach })
    const first = tried('slow.com', 'one')
    await expect(tried('slow.com', 'one')).rejects.toMatchObject({ code: 'discovery_in_progress' })
    const quick = discoverer({ reach: internet.reach })
    for (let count = 0; count < 12; count++) await quick('nobody.org', 'one')
    await expect(quick('nobody.org', 'one')).rejects.toMatchObject({ code: 'rate_limited' })
    expect(await quick('nobody.org', 'two')).toMatchObject({ method: null })
    expect(await first).toMatchObject({ method: null, records: [], reason: 'None of its nameservers answered.' })
  })

  test('is told what was found when its nameservers stop answering, which are not asked on and on', async () => {
    let answers = 0
    const server = await internet.addServer('ns1.tired.net', (name, type, tcp) => {
      if (tcp) return { code: 'REFUSED' }
      if (++answers > 8) return null
      return name === 'tired.com' && type === 'A' ? { answer: [['tired.com', 'A', '192.0.2.1']] } : {}
    })
    internet.zones.set('tired.com', ['ns1.tired.net'])
    const found = await discoverer({ reach: internet.reach })('tired.com', 'tired')
    expect(found.records).toEqual([{ name: '@', type: 'A', value: '192.0.2.1', ttl: 30 }])
    expect(found.reason).toMatch(/not answered/)
    expect(server.asked.length).toBeLessThan(80)
  })

  test('is told of some thousand records at most, whose server is asked no further', async () => {
    let address = 0
    const server = await internet.addServer('ns1.endless.net', (name, type, tcp) => {
      if (tcp) return { code: 'REFUSED' }
      if (type !== 'A') return {}
      const answer = Array.from({ length: 1_000 }, () => `10.0.${++address >> 8}.${address & 255}`)
      return { answer: answer.map((value) => [name, 'A', value]) }
    })
    internet.zones.set('endless.com', ['ns1.endless.net'])
    const found = await discoverer({ reach: internet.reach })('endless.com', 'endless')
    expect(found.records.length).toBeLessThanOrEqual(10_000)
    expect(found.reason).toMatch(/there may be more/)
    expect(address).toBeLessThan(60_000)
    expect(server.asked.length).toBeLessThan(200)
  })

  test('gets the same answer again for the same key', async () => {
    const headers = { 'idempotency-key': 'discover-1' }
    const first = await discover('here.com', { headers })
    const again = await discover('here.com', { headers })
    expect(again.headers['idempotency-replayed']).toBe('true')
    expect(again.body).toEqual(first.body)
  })
})

const soa = Buffer.concat([nameOctets('ns.x'), nameOctets('h.x'), Buffer.alloc(20)])

function rr(owner: string, type: number, rdata: Buffer, ttl = 7200): Buffer {
  const head = Buffer.alloc(10)
  head.writeUInt16BE(type, 0)
  head.writeUInt16BE(1, 2)
  head.writeUInt32BE(ttl, 4)
  head.writeUInt16BE(rdata.length, 8)
  return Buffer.concat([nameOctets(owner), head, rdata])
}

function messageOf(id: number, records: Buffer[], rcode = 0): Buffer {
  const header = Buffer.alloc(12)
  header.writeUInt16BE(id, 0)
  header.writeUInt16BE(0x8400 | rcode, 2)
  header.writeUInt16BE(records.length, 6)
  const packet = Buffer.concat([header, ...records])
  const length = Buffer.alloc(2)
  length.writeUInt16BE(packet.length)
  return Buffer.concat([length, packet])
}

describe('by a transfer', () => {
  const servers: Server[] = []
  const sockets: Socket[] = []
  const udps: UdpSocket[] = []
  afterEach(() => {
    for (const udp of udps.splice(0)) udp.close()
    for (const socket of sockets.splice(0)) socket.destroy()
    for (const server of servers.splice(0)) server.close()
  })

  async function primary(answer: (id: number, socket: Socket) => void): Promise<number> {
    const server = createServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => {})
      socket.once('data', (query: Buffer) => answer(query.readUInt16BE(2), socket))
    })
    servers.push(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    // It answers questions, with nothing.
    const udp = createSocket('udp4', (query, from) => {
      query.writeUInt16BE(0x8400, 2)
      udp.send(query, from.port, from.address)
    })
    udps.push(udp)
    udp.bind(port, '127.0.0.1')
    await once(udp, 'listening')
    return port
  }
  const fetched = (port: number, bounds = {}) =>
    fetchZone({ host: '127.0.0.1', port }, 'whole.com', {
      ...{ timeoutMs: 2_000, maxOctets: 100_000, maxRecords: 1_000 },
      ...bounds,
    })

  test('is found everything, in the form of the API', async () => {
    const port = await primary((id, socket) => {
      const records = [
        rr('whole.com', 6, soa),
        rr('whole.com', 2, nameOctets('ns.old.net')),
        rr('whole.com', 15, Buffer.concat([Buffer.from([0, 10]), nameOctets('mx.whole.com')])),
        rr('unheardof.whole.com', 1, Buffer.from([192, 0, 2, 9]), 5),
        rr('sub.whole.com', 2, nameOctets('ns.sub.net')),
        rr('whole.com', 46, Buffer.alloc(40)),
        rr('odd.whole.com', 65_400, Buffer.from([1, 2])),
        rr('outside.net', 1, Buffer.from([192, 0, 2, 8])),
      ]
      // In two messages that arrive in pieces.
      const octets = Buffer.concat([messageOf(id, records), messageOf(id, [rr('whole.com', 6, soa)])])
      socket.write(octets.subarray(0, 33))
      setImmediate(() => socket.write(octets.subarray(33)))
    })
    internet.place('ns1.whole.net', '198.51.100.90', port)
    await moving('whole.com', '', ['ns1.whole.net'])
    const answer = await discover('whole.com')
    expect(answer.body).toMatchObject({ method: 'transfer', questions: 0, reason: null })
    const taken = ['@ MX 10 mx.whole.com', 'sub NS ns.sub.net', 'unheardof A 192.0.2.9']
    expect(shown(answer)).toEqual(expect.arrayContaining(taken))
    expect(answer.body.changes.create.find(({ name }: { name: string }) => name === 'unheardof').ttl).toBe(30)
    expect(shown(answer).join()).not.toMatch(/outside|ns\.old|TYPE46/)
    expect(answer.body.found + answer.body.skipped.length).toBe(4)
  })

  test.each<[string, (id: number, socket: Socket) => void, object]>([
    ['refused', (id, socket) => socket.write(messageOf(id, [], 5)), {}],
    ['refused', (_id, socket) => socket.end(), {}],
    ['timeout', () => {}, { timeoutMs: 50 }],
    ['malformed', (id, socket) => socket.write(messageOf(id ^ 1, [rr('whole.com', 6, soa)])), {}],
    ['malformed', (id, socket) => socket.write(messageOf(id, [rr('other.com', 6, soa)])), {}],
    ['malformed', (id, socket) => socket.end(messageOf(id, [rr('whole.com', 6, soa)])), {}],
    ['malformed', (_id, socket) => socket.write(Buffer.alloc(300, 0xff)), { timeoutMs: 50, maxOctets: 70_000 }],
  ])('a server that does not give a zone is %s', async (outcome, answer, bounds) => {
    const result = await fetched(await primary(answer), bounds)
    // 0xffff octets of length never come.
    expect([outcome, 'timeout']).toContain(result)
  })

  test('a zone without end is given up', async () => {
    const endless = (size: number) => (id: number, socket: Socket) => {
      const first = messageOf(id, [rr('whole.com', 6, soa)])
      const more = messageOf(
        id,
        Array.from({ length: 20 }, () => rr('a.whole.com', 16, Buffer.alloc(size))),
      )
      socket.write(first)
      const next = () => !socket.destroyed && socket.write(more, () => setImmediate(next))
      next()
    }
    expect(await fetched(await primary(endless(200)))).toBe('too_large')
    expect(await fetched(await primary(endless(1)), { maxOctets: 10_000_000, maxRecords: 100 })).toBe('too_large')
  })
})
