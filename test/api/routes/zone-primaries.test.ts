// A zone that follows a primary elsewhere: what it takes over, when it looks, and that nobody else writes it meanwhile.
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createFollowHandler } from '../../../src/engines/following/index.ts'
import { createNameserver, type Nameserver } from '../../../src/engines/nameserver/server.ts'
import { createZoneWork, type ZoneWork } from '../../../src/services/dns/thread/zone-work.ts'
import { askUdp } from '../../engines/nameserver/packets.ts'
import {
  isMissing,
  keyName,
  type Peer,
  secret,
  startPeer,
  startWorld,
  type World,
} from '../../engines/nameserver/transfer/world.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { freePort } from '../../helpers/ports.ts'
import { until } from '../../helpers/until.ts'

const silent = pino({ level: 'silent' })
let primary: World
let api: TestApi
let nameserver: Nameserver
let port: number
let zoneWork: ZoneWork
let follow: ReturnType<typeof createFollowHandler>

beforeAll(async () => {
  primary = await startWorld()
  api = await startApi({ NAMESERVER_LISTEN: '127.0.0.1:0' })
  await api.newProject('site')
  zoneWork = createZoneWork({ db: api.db, databaseUrl: api.config.databaseUrl!, log: silent })
  follow = createFollowHandler({ ...api.deps, zoneWork, log: silent })
  nameserver = createNameserver({ ...api.deps, log: silent })
  port = (await nameserver.listen())[0]!.port
})
afterAll(async () => {
  await nameserver?.close()
  await zoneWork?.close()
  await api?.stop()
  await primary?.stop()
})

const call: TestApi['call'] = (...given) => api.call(...given)

async function newZone(name: string): Promise<void> {
  const made = await call('POST', '/domains', { body: { project: 'site', name } })
  expect(made.status, made.text).toBe(201)
}

async function look(name: string): Promise<void> {
  const { id: domainId } = await api.db.domain.findFirstOrThrow({ where: { name } })
  await follow.run({ domainId }, { attempt: 1, signal: new AbortController().signal, async requireHeld() {} })
}

const putPrimary = (name: string, body: object) => call('PUT', `/dns/${name}/secondary`, { body })
const signed = (port: number) => ({ primary: `127.0.0.1:${port}`, keyName, secret })

async function records(of: TestApi, name: string): Promise<string[]> {
  const { body } = await of.call('GET', `/dns/${name}/records?limit=100`)
  return body.records
    .map(({ name, type, value, ttl }: Record<string, string>) => `${name} ${ttl} ${type} ${value}`)
    .sort()
}

describe('a zone that follows', () => {
  test('has the records of its primary, in each of its versions, and answers with them', async () => {
    await primary.addDomain('twin.com')
    await primary.addRecord('twin.com', 'MX', '@', '10 mail.twin.com')
    await primary.addRecord('twin.com', 'TXT', 'odd\\; name', '"a \\"quoted\\" text"').catch(() => undefined)
    await primary.addRecord('twin.com', 'PTR', 'my\\032first\\046printer.\\195\\164._ipp._tcp', 'printer.twin.com')
    const id = await primary.addRecord('twin.com', 'A', 'www', '192.0.2.7')
    await primary.addRecord('twin.com', 'CAA', '@', '0 issue "ca.example"')
    await primary.settled('twin.com')
    await newZone('twin.com')
    await call('POST', '/dns/twin.com/records', { body: { type: 'A', name: 'old', value: '192.0.2.9' } })
    const put = await putPrimary('twin.com', signed(primary.port))
    expect(put.status, put.text).toBe(200)
    expect(put.body).toMatchObject({ primary: `127.0.0.1:${primary.port}`, keyName, serial: null, error: null })
    expect(put.text).not.toContain(secret)
    await look('twin.com')
    const { body } = await call('GET', '/dns/twin.com/secondary')
    expect(body).toMatchObject({ serial: await primary.settled('twin.com'), error: null })
    // The addresses that the primary adds itself are records to whoever follows it.
    const stored = (await records(primary.api, 'twin.com')).filter((line) => !line.startsWith('@ 60 A'))
    const followed = await records(api, 'twin.com')
    expect(followed).toEqual(expect.arrayContaining(stored))
    expect(followed.some((line) => line.startsWith('old '))).toBe(false)
    await until(async () => (await askUdp(port, 'www.twin.com', 'A')).answer.length === 1)

    await primary.api.call('DELETE', `/dns/twin.com/records/${id}`)
    await primary.addRecord('twin.com', 'A', 'new', '192.0.2.8')
    await primary.settled('twin.com')
    await look('twin.com')
    const after = await records(api, 'twin.com')
    expect(after).toContain('new 300 A 192.0.2.8')
    expect(after.some((line) => line.startsWith('www 300 '))).toBe(false)
    const imported = await api.db.event.findMany({ where: { type: 'dns.zone.imported', subject: 'twin.com' } })
    expect(imported.map(({ actor }) => actor)).toEqual(['system', 'system'])
  })

  test('is not transferred again while its serial is the same, and is looked at again when it is due', async () => {
    const before = await records(api, 'twin.com')
    const { serial } = await api.db.domain.findFirstOrThrow({ where: { name: 'twin.com' } })
    await look('twin.com')
    expect(await records(api, 'twin.com')).toEqual(before)
    expect((await api.db.domain.findFirstOrThrow({ where: { name: 'twin.com' } })).serial).toBe(serial)
    const { body } = await call('GET', '/dns/twin.com/secondary')
    const waits = Date.parse(body.nextCheckAt) - Date.parse(body.checkedAt)
    expect([waits > 590_000, waits < 610_000]).toEqual([true, true])
  })

  test('cannot be written by anybody else, in whichever way, until it follows no more', async () => {
    const { body: list } = await call('GET', '/dns/twin.com/records')
    const { id } = list.records[0]
    const tries: [string, string, object][] = [
      ['POST', '/dns/twin.com/records', { body: { type: 'A', name: 'x', value: '192.0.2.1' } }],
      ['PATCH', `/dns/twin.com/records/${id}`, { body: { ttl: 900 } }],
      ['DELETE', `/dns/twin.com/records/${id}`, {}],
      ['POST', '/dns/twin.com/records/batch', { body: { delete: [id] } }],
      ['PUT', '/dns/twin.com/rrsets/x/A', { body: { values: ['192.0.2.1'], ttl: 300 } }],
      ['DELETE', '/dns/twin.com/rrsets/new/A', {}],
    ]
    for (const [method, path, options] of tries) {
      const answer = await call(method as 'POST', path, options)
      expect([path, answer.status, answer.body?.code], answer.text).toEqual([path, 409, 'zone_follows_primary'])
    }
    const before = await records(api, 'twin.com')
    expect((await call('DELETE', '/dns/twin.com/secondary')).status).toBe(204)
    expect(await records(api, 'twin.com')).toEqual(before)
    expect((await call('GET', '/dns/twin.com/secondary')).status).toBe(404)
    expect((await call(...(tries[0] as ['POST', string, object]))).status).toBe(201)
    await look('twin.com')
    expect(await records(api, 'twin.com')).toHaveLength(before.length + 1)
  })

  describe('takes nothing over from a look', () => {
    /** A look, and what happens after its transfer and before its records are written. */
    async function lookWhile(name: string, meanwhile: () => Promise<unknown>): Promise<void> {
      const importZone: ZoneWork['importZone'] = async (...given) => {
        await meanwhile()
        return zoneWork.importZone(...given)
      }
      const { id: domainId } = await api.db.domain.findFirstOrThrow({ where: { name } })
      const late = createFollowHandler({ ...api.deps, zoneWork: { ...zoneWork, importZone }, log: silent })
      await late.run({ domainId }, { attempt: 1, signal: new AbortController().signal, async requireHeld() {} })
    }

    async function newFollower(name: string): Promise<void> {
      await primary.addDomain(name)
      await primary.addRecord(name, 'A', 'first', '192.0.2.1')
      await primary.settled(name)
      await newZone(name)
      await putPrimary(name, signed(primary.port))
    }

    test('that ends after the primary was removed', async () => {
      await newFollower('left.com')
      await lookWhile('left.com', async () => {
        await call('DELETE', '/dns/left.com/secondary')
        await call('POST', '/dns/left.com/records', { body: { type: 'A', name: 'own', value: '192.0.2.9' } })
      })
      expect(await records(api, 'left.com')).toEqual(['own 300 A 192.0.2.9'])
    })

    test('that ends after another worker took a newer version over', async () => {
      await newFollower('newer.com')
      await lookWhile('newer.com', async () => {
        await primary.addRecord('newer.com', 'A', 'second', '192.0.2.2')
        await primary.settled('newer.com')
        await look('newer.com')
      })
      expect(await records(api, 'newer.com')).toContain('second 300 A 192.0.2.2')
      const { body } = await call('GET', '/dns/newer.com/secondary')
      expect(body).toMatchObject({ serial: await primary.settled('newer.com'), error: null })
    })
  })

  test('keeps what it has and says why, where the primary refuses, is silent, or signs with another key', async () => {
    await newZone('kept.com')
    await call('POST', '/dns/kept.com/records', { body: { type: 'A', name: 'stays', value: '192.0.2.9' } })
    const silentPort = await freePort()
    const cases: [object, RegExp][] = [
      [signed(primary.port), /refused|not authoritative/],
      [{ primary: `127.0.0.1:${silentPort}` }, /refused|reached|not (answer|respond)/],
    ]
    for (const [body, reason] of cases) {
      expect((await putPrimary('kept.com', body)).status).toBe(200)
      await look('kept.com')
      const { body: seen } = await call('GET', '/dns/kept.com/secondary')
      expect(seen.error).toMatch(reason)
      expect(seen.serial).toBeNull()
      expect(await records(api, 'kept.com')).toEqual(['stays 300 A 192.0.2.9'])
    }
    await primary.addDomain('signed.com')
    await primary.settled('signed.com')
    await newZone('signed.com')
    const other = Buffer.alloc(32, 'other').toString('base64')
    await putPrimary('signed.com', { ...signed(primary.port), secret: other })
    await look('signed.com')
    expect((await call('GET', '/dns/signed.com/secondary')).body.error).toMatch(/refused|not signed/)
  })

  test('takes a notice of its primary, and of nobody else', async () => {
    await primary.addDomain('noticed.com')
    await primary.settled('noticed.com')
    await newZone('noticed.com')
    await putPrimary('noticed.com', signed(primary.port))
    await look('noticed.com')
    const { id } = await api.db.domain.findFirstOrThrow({ where: { name: 'noticed.com' } })
    const dueIn = async () =>
      +(await api.db.job.findFirstOrThrow({ where: { kind: 'follow', key: id } })).runAt - Date.now()
    await api.db.job.updateMany({ where: { kind: 'follow', key: id }, data: { runAt: new Date(Date.now() + 600_000) } })
    await until(async () => (await askUdp(port, 'noticed.com', 'SOA')).answer.length === 1)
    expect((await askUdp(port, 'noticed.com', 'SOA', { opcode: 4 })).rcode).toBe('NOERROR')
    expect(await dueIn()).toBeLessThan(10_000)
    // A zone that follows nobody.
    expect((await askUdp(port, 'twin.com', 'SOA', { opcode: 4 })).rcode).toBe('NOTIMP')
    await api.db.zonePrimary.update({ where: { domainId: id }, data: { address: '192.0.2.1:53' } })
    await api.db.job.updateMany({ where: { kind: 'follow', key: id }, data: { runAt: new Date(Date.now() + 600_000) } })
    expect((await askUdp(port, 'noticed.com', 'SOA', { opcode: 4 })).rcode).toBe('NOTIMP')
    expect(await dueIn()).toBeGreaterThan(500_000)
  })

  test.each([
    ['no address', { primary: 'ns.example.com' }, '#/primary'],
    ['a port that is none', { primary: '192.0.2.1:99999' }, '#/primary'],
    ['a key without a secret', { primary: '192.0.2.1', keyName: 'a' }, '#/secret'],
    ['a secret without a key', { primary: '192.0.2.1', secret }, '#/keyName'],
    ['a secret that is not base64', { primary: '192.0.2.1', keyName: 'a', secret: 'not base64 at all' }, '#/secret'],
  ])('is refused %s', async (_, body, pointer) => {
    const { status, body: problem } = await putPrimary('kept.com', body)
    expect([status, problem.errors?.[0].pointer]).toEqual([422, pointer])
  })
})

const zoneLines = (zone: string, serial: number) => `$TTL 300
@ SOA ns hostmaster ${serial} 900 120 604800 60
@ NS ns
ns A 192.0.2.1
@ MX 10 mail
mail AAAA 2001:db8::25
sub NS ns.elsewhere.example.
_sip._tcp SRV 1 2 5060 mail
t TXT "one" "two; three"
x TYPE65280 \\# 3 010203
${Array.from({ length: 3000 }, (_, i) => `host-${i} A 10.0.${i >> 8}.${i & 255}`).join('\n')}
; of ${zone}
`

describe.skipIf(isMissing('named', 'knotd'))('a primary that is', () => {
  let peer: Peer | null = null
  afterAll(() => peer?.stop())

  async function follows(name: string, peerPort: number): Promise<void> {
    await newZone(name)
    await putPrimary(name, signed(peerPort))
    await until(async () => {
      await look(name)
      const { body } = await call('GET', `/dns/${name}/secondary`)
      return body.serial === 7
    }).catch(async (error) => {
      const { text } = await call('GET', `/dns/${name}/secondary`)
      throw new Error(`${error}\n${text}\n${peer?.output()}`)
    })
    expect(await api.db.dnsRecord.count({ where: { domain: { name } } })).toBe(3007)
    const lines = (
      await api.db.dnsRecord.findMany({ where: { domain: { name }, NOT: { name: { startsWith: 'host-' } } } })
    )
      .map(({ name, type, value }) => `${name} ${type} ${value}`)
      .sort()
    expect(lines).toEqual([
      `@ MX 10 mail.${name}`,
      `_sip._tcp SRV 1 2 5060 mail.${name}`,
      'mail AAAA 2001:db8::25',
      'ns A 192.0.2.1',
      'sub NS ns.elsewhere.example',
      't TXT "one" "two; three"',
      'x TYPE65280 \\# 3 010203',
    ])
    const { body } = await call('GET', `/dns/${name}/secondary`)
    expect(Math.round((Date.parse(body.nextCheckAt) - Date.parse(body.checkedAt)) / 1_000)).toBe(900)
  }

  test('BIND, with a signed transfer of many messages', async () => {
    const peerPort = await freePort()
    peer = await startPeer(
      'named',
      (directory) => ['-g', '-c', join(directory, 'named.conf')],
      (directory) => ({
        'named.conf': `options { directory "${directory}"; listen-on port ${peerPort} { 127.0.0.1; }; listen-on-v6 { none; };
          pid-file none; recursion no; notify no; dnssec-validation no; };
          controls { };
          key "${keyName}" { algorithm hmac-sha256; secret "${secret}"; };
          zone "bind.com" { type primary; file "zone"; allow-transfer { key "${keyName}"; }; };`,
        zone: zoneLines('bind.com', 7),
      }),
    )
    await follows('bind.com', peerPort)
    await peer.stop()
    peer = null
  })

  test('Knot', async () => {
    const peerPort = await freePort()
    peer = await startPeer(
      'knotd',
      (directory) => ['-c', join(directory, 'knot.conf')],
      (directory) => ({
        'knot.conf': `server:
  listen: 127.0.0.1@${peerPort}
  rundir: "${directory}"
log:
  - target: stderr
    any: info
database:
  storage: "${directory}"
key:
  - id: ${keyName}
    algorithm: hmac-sha256
    secret: ${secret}
acl:
  - id: transfer
    key: ${keyName}
    action: transfer
zone:
  - domain: knot.com
    storage: "${directory}"
    file: zone
    acl: transfer
`,
        zone: zoneLines('knot.com', 7),
      }),
    )
    await follows('knot.com', peerPort)
  })
})
