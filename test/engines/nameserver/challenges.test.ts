// What certificate authorities ask the nameservers for, and the platform's own zones: neither is in a customer's records.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../../../src/config.ts'
import { textName } from '../../../src/dns/packet/wire-names.ts'
import { differenceOf } from '../../../src/engines/nameserver/transfer/records.ts'
import { platformZones } from '../../../src/services/dns/zones/platform-zones.ts'
import { until } from '../../helpers/until.ts'
import { addressesIn, askUdp } from './packets.ts'
import { nowhere, row, startOffline } from './transfer/offline.ts'
import { startWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld({}, { NAMESERVERS: 'ns1.berth.example,ns2.dns.berth.example' })
  await world.newDomain('shop.com')
  await world.db.acmeOrder.create({ data: { subject: 'order', directory: 'https://ca.test' } })
})
afterAll(() => world.stop())

const texts = async (port: number, name: string) =>
  (await askUdp(port, name, 'TXT')).answer.map(({ data }) => data.toString('latin1', 1)).sort()
const everywhere = (name: string, wanted: string[]) =>
  until(async () => {
    const found = await Promise.all(world.ports.map((port) => texts(port, name)))
    return found.every((one) => one.join() === wanted.join())
  })

/** As whoever orders a certificate does it: the row and the serial in one statement. */
async function challenge(table: 'domain' | 'platform_zone', zone: string, name: string, value: string): Promise<void> {
  const data = { id: `${name} ${value}`, subject: 'order', type: 'dns-01', name, zone, token: 'token', value }
  const grown = { where: { name: zone }, data: { serial: { increment: 1 } } }
  const { db } = world
  await db.$transaction([
    db.acmeChallenge.create({ data }),
    table === 'domain' ? db.domain.updateMany(grown) : db.platformZone.updateMany(grown),
  ])
}

describe('a challenge', () => {
  test('is answered by both listeners as soon as its row is there, and no longer than that', async () => {
    const rcode = async () => (await askUdp(world.ports[0]!, '_acme-challenge.shop.com', 'TXT')).rcode
    await until(async () => (await rcode()) === 'NXDOMAIN')
    await challenge('domain', 'shop.com', 'shop.com', 'one')
    await challenge('domain', 'shop.com', 'shop.com', 'two')
    await challenge('domain', 'shop.com', 'a.b.shop.com', 'three')
    await everywhere('_acme-challenge.a.b.shop.com', ['three'])
    await everywhere('_acme-challenge.shop.com', ['one', 'two'])
    await world.db.acmeChallenge.deleteMany({ where: { value: 'one' } })
    await world.db.domain.updateMany({ where: { name: 'shop.com' }, data: { serial: { increment: 1 } } })
    await everywhere('_acme-challenge.shop.com', ['two'])
  })

  test('of another zone, or for a name outside of it, is not', async () => {
    await challenge('domain', 'shop.com', 'workshop.com', 'stray')
    await challenge('domain', 'shop.com', 'shop.com', 'last')
    await everywhere('_acme-challenge.shop.com', ['last', 'two'])
    expect(world.nameserver.snapshot!.table.get('shop.com')!.records).not.toContain('stray')
  })

  test('is not in the exported zone', async () => {
    expect((await world.call('GET', '/dns/shop.com/zone')).text).not.toContain('_acme-challenge')
  })

  test('goes to secondaries as a difference, with the copies of a wildcard that it needs', () => {
    const offline = startOffline()
    const at = (serial: number, records: string[]) => {
      offline.put(['d.test'], [row('d.test', serial, records)])
      return offline.table.get('d.test')!
    }
    const records = ['A 300 * 192.0.2.1', 'A 300 other 192.0.2.2']
    const before = at(1, records)
    const after = at(2, [...records, 'CHALLENGE 30 _acme-challenge.x "one"'])
    const difference = differenceOf(offline.table, before, after, nowhere)!
    expect(difference.removed).toEqual([])
    expect(difference.added.map(({ owner }) => textName(owner)).sort()).toEqual([
      '*.x.d.test',
      '_acme-challenge.x.d.test',
      'x.d.test',
    ])
  })
})

describe('the domain of the deployments', () => {
  const ask = (name: string, type: string) => askUdp(world.ports[0]!, name, type)

  test('is a zone whose every host is the edge, but for the nameservers', async () => {
    const soa = await ask('berth.example', 'SOA')
    expect([soa.aa, soa.answer.length]).toEqual([true, 1])
    expect((await ask('berth.example', 'NS')).answer).toHaveLength(2)
    for (const name of ['berth.example', 'hello.berth.example', 'www.berth.example', 'ns3.berth.example']) {
      expect([name, addressesIn((await ask(name, 'A')).answer)]).toEqual([name, ['192.0.2.80']])
    }
    for (const name of ['ns1.berth.example', 'ns2.dns.berth.example']) {
      expect([name, addressesIn((await ask(name, 'A')).answer)]).toEqual([name, ['127.0.0.1']])
    }
    expect((await ask('ns1.berth.example', 'AAAA')).answer).toEqual([])
  })

  test('has its challenges, while its hosts stay where they are', async () => {
    await challenge('platform_zone', 'berth.example', 'berth.example', 'whole')
    await challenge('platform_zone', 'berth.example', 'api.berth.example', 'api')
    await everywhere('_acme-challenge.api.berth.example', ['api'])
    await everywhere('_acme-challenge.berth.example', ['whole'])
    expect(addressesIn((await ask('api.berth.example', 'A')).answer)).toEqual(['192.0.2.80'])
    expect(addressesIn((await ask('v2.api.berth.example', 'A')).answer)).toEqual(['192.0.2.80'])
  })

  test('is the platform’s, even where a domain of that name was attached before', async () => {
    await world.newDomain('claim.com')
    const taken = { name: 'berth.example', serial: 9, verified: true }
    await world.db.domain.updateMany({ where: { name: 'claim.com' }, data: taken })
    await world.newDomain('later.com')
    await until(async () => (await ask('later.com', 'SOA')).answer.length === 1)
    expect(world.nameserver.snapshot!.table.get('berth.example')!.id).toBe('platform berth.example')
  })
})

describe('the addresses of the nameservers', () => {
  const zonesOf = (environment: Record<string, string>) => {
    const config = loadConfig({
      DEPLOYMENT_DOMAIN: 'berth.app',
      NAMESERVERS: 'ns1.berth.app,ns2.berth.app',
      ...environment,
    })
    return (production: boolean) => platformZones({ ...config, production })
  }

  test('are where they listen, and else those of the edge, one each where there are two', () => {
    const listed = zonesOf({ NAMESERVER_LISTEN: '192.0.2.1,[2001:db8::2]:53', EDGE_ADDRESSES: '192.0.2.80' })
    expect(listed(true).get('berth.app')!.records).toEqual([
      'A 60 * 192.0.2.80',
      'A 60 ns1 192.0.2.1',
      'AAAA 60 ns2 2001:db8::2',
    ])
    const edges = zonesOf({
      NAMESERVER_LISTEN: '0.0.0.0:53,127.0.0.1',
      EDGE_ADDRESSES: '192.0.2.80,192.0.2.81,2001:db8::1',
    })
    expect(edges(true).get('berth.app')!.records.slice(3)).toEqual([
      'A 60 ns1 192.0.2.80',
      'AAAA 60 ns1 2001:db8::1',
      'A 60 ns2 192.0.2.81',
      'AAAA 60 ns2 2001:db8::1',
    ])
  })

  test('below another name are served on one’s own machine, and are somebody else’s in production', () => {
    const zones = zonesOf({ NAMESERVERS: 'ns1.berth.test,ns2.berth.test' })
    expect([...zones(false).keys()]).toEqual(['berth.app', 'berth.test'])
    expect(zones(false).get('berth.test')).toMatchObject({
      verified: false,
      records: ['A 60 ns1 127.0.0.1', 'A 60 ns2 127.0.0.1'],
    })
    expect([...zones(true).keys()]).toEqual(['berth.app'])
  })
})
