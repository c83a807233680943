import { afterEach, describe, expect, test, vi } from 'vitest'
import { typeNumbers } from '../../../src/dns/packet/numbers.ts'
import { wireName } from '../../../src/dns/packet/wire-names.ts'
import { createAliases, type ResolveAlias } from '../../../src/engines/nameserver/alias.ts'
import { createNameserver } from '../../../src/engines/nameserver/server.ts'
import { isPublicAddress } from '../../../src/platform/public-address.ts'
import { until } from '../../helpers/until.ts'
import { addressesIn, askUdp, question } from './packets.ts'
import { startWorld } from './world.ts'
import { ask, negativeSoa, nowhere, type Served, serveZones, zoneOf } from './zones.ts'

let served: Served | null = null
afterEach(async () => {
  vi.useRealTimers()
  await served?.stop()
  served = null
})
const target = wireName('host.example.net')
const settle = (aliases: ReturnType<typeof createAliases>) => aliases.settled(target, typeNumbers.A, 'acc')

describe('an ALIAS inside the zone', () => {
  const zone = zoneOf(`
    @ ALIAS host.example.com
    host 120 A 192.0.2.1
    two ALIAS three.example.com
    three CNAME host.example.com
    wild ALIAS any.w.example.com
    *.w A 192.0.2.2
    missing ALIAS nowhere.example.com
    loop1 ALIAS loop2.example.com
    loop2 ALIAS loop1.example.com
    below ALIAS host.cut.example.com
    cut NS ns.example.net
    host.cut A 192.0.2.9
    out ALIAS three-out.example.com
    three-out CNAME host.example.net
  `)

  test('answers with what stands there, through CNAME and other ALIAS', () => {
    expect(ask(zone, 'example.com', 'A').answer).toEqual(['example.com 120 A 192.0.2.1'])
    expect(ask(zone, 'two.example.com', 'A').answer).toEqual(['two.example.com 120 A 192.0.2.1'])
    expect(ask(zone, 'wild.example.com', 'A').answer).toEqual(['wild.example.com 300 A 192.0.2.2'])
  })

  test('has NODATA where its target has none', () => {
    expect(ask(zone, 'example.com', 'AAAA')).toMatchObject({ rcode: 'NOERROR', answer: [], authority: negativeSoa() })
    expect(ask(zone, 'missing.example.com', 'A')).toMatchObject({ rcode: 'NOERROR', authority: negativeSoa() })
    expect(ask(zone, 'example.com', 'TXT')).toMatchObject({ rcode: 'NOERROR', answer: [] })
  })

  test('in a circle is SERVFAIL', () => {
    expect(ask(zone, 'loop1.example.com', 'A')).toMatchObject({ rcode: 'SERVFAIL', answer: [] })
  })

  test('is resolved elsewhere where it leads out of the zone or below a delegation', () => {
    const around = { ...nowhere, resolved: () => ({ rdatas: [], ttl: 30 }) }
    for (const name of ['below', 'out']) {
      expect(ask(zone, `${name}.example.com`, 'A').found.awaits).not.toBeNull()
      expect(ask(zone, `${name}.example.com`, 'A', around)).toMatchObject({ rcode: 'NOERROR', answer: [] })
    }
  })
})

describe('addresses from elsewhere', () => {
  test('are kept for their ttl, between 30 and 300 seconds, and renewed while the old ones are served', async () => {
    let nowMs = 0
    let ttl = 5
    let address = '192.0.2.1'
    const resolve = vi.fn<ResolveAlias>(async () => [{ address, ttl }])
    const aliases = createAliases(resolve, { mayAnswer: () => true, now: () => nowMs })
    const read = () => {
      const known = aliases.resolved(target, typeNumbers.A, 'acc')
      return known && `${known.rdatas.map(({ head }) => head.join('.'))} ${known.ttl}`
    }
    expect(read()).toBeNull()
    await settle(aliases)
    expect(read()).toBe('192.0.2.1 30')
    nowMs += 29_000
    read()
    expect(resolve).toHaveBeenCalledTimes(1)
    nowMs += 2_000
    ttl = 9_000
    address = '192.0.2.2'
    expect(read()).toBe('192.0.2.1 30')
    await settle(aliases)
    expect(read()).toBe('192.0.2.2 300')
    expect(resolve).toHaveBeenCalledTimes(2)
    expect(resolve).toHaveBeenLastCalledWith('host.example.net', 'A')
  })

  test('outlive a resolver that fails, for an hour', async () => {
    let nowMs = 0
    let fails = false
    const aliases = createAliases(
      async () => {
        if (fails) throw new Error('away')
        return [{ address: '192.0.2.1', ttl: 60 }]
      },
      { mayAnswer: () => true, now: () => nowMs },
    )
    aliases.resolved(target, typeNumbers.A, 'acc')
    await settle(aliases)
    fails = true
    for (nowMs = 61_000; nowMs < 3_600_000; nowMs += 600_000) {
      expect(aliases.resolved(target, typeNumbers.A, 'acc')?.rdatas).toHaveLength(1)
      await settle(aliases)
    }
    nowMs = 3_700_000
    expect(aliases.resolved(target, typeNumbers.A, 'acc')).toBeNull()
  })
})

describe('an account that leads names to servers that do not answer', () => {
  const slow = (n: number) => wireName(`slow${n}.example.org`)
  const resolve: ResolveAlias = (name) =>
    name.startsWith('slow') ? new Promise(() => {}) : Promise.resolve([{ address: '192.0.2.1', ttl: 60 }])

  test('leaves lookups to the others', async () => {
    const aliases = createAliases(resolve, { mayAnswer: () => true })
    for (let n = 0; n < 1_000; n++) aliases.resolved(slow(n), typeNumbers.A, 'hog')
    expect(aliases.resolved(target, typeNumbers.A, 'acc')).toBeNull()
    await settle(aliases)
    expect(aliases.resolved(target, typeNumbers.A, 'acc')?.rdatas).toHaveLength(1)
  })

  test('leaves answers that may wait to the others', async () => {
    served = await serveZones({ resolveAlias: resolve, rateLimit: null })
    served.put('hog.com', '@ ALIAS slow1.example.org', { account: 'hog' })
    served.put('example.com', '@ ALIAS host.example.net', { account: 'acc' })
    const channel = { tcp: false, send() {} }
    for (let n = 0; n < 1_200; n++) {
      void served.responder.respond(question('hog.com', 'A'), { address: '127.0.0.1', port: 9 }, channel)
    }
    expect((await askUdp(served.port, 'example.com', 'A')).rcode).toBe('NOERROR')
  })

  test('makes nobody else’s addresses be forgotten, however many names it has', async () => {
    const aliases = createAliases(resolve, { mayAnswer: () => true })
    aliases.resolved(target, typeNumbers.A, 'acc')
    await settle(aliases)
    for (let n = 0; n < 12_000; n++) {
      aliases.resolved(wireName(`quick${n}.example.org`), typeNumbers.A, 'hog')
      if (n % 40 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(aliases.resolved(target, typeNumbers.A, 'acc')?.rdatas).toHaveLength(1)
  })
})

describe('addresses that are not public', () => {
  const addresses = {
    A: ['10.0.0.1', '8.8.8.8', '127.0.0.1', '169.254.169.254', '100.64.0.1', '192.168.1.1', '0.0.0.0', '168.63.129.16'],
    AAAA: [
      ...['::1', 'fe80::1', 'fc00::1', '::', 'ff02::1', '2002:a00:1::', '2001:db8::1', '64:ff9b::10.0.0.1'],
      ...['2606:4700:4700::1111', '::ffff:192.168.0.1', '::ffff:127.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b:1::a00:1'],
    ],
  }
  const resolve: ResolveAlias = async (_name, type) => addresses[type].map((address) => ({ address, ttl: 60 }))
  const onlyPrivate: ResolveAlias = async () => [{ address: '10.0.0.1', ttl: 5 }]

  async function answered(mayAnswer: (address: string) => boolean, type: 'A' | 'AAAA', resolver = resolve) {
    const aliases = createAliases(resolver, { mayAnswer })
    aliases.resolved(target, typeNumbers[type], 'acc')
    await aliases.settled(target, typeNumbers[type], 'acc')
    return aliases.resolved(target, typeNumbers[type], 'acc')
  }

  test('are left out where only public ones may be answered', async () => {
    const ipv4 = await answered(isPublicAddress, 'A')
    expect(ipv4?.rdatas.map(({ head }) => head.join('.'))).toEqual(['8.8.8.8'])
    const ipv6 = await answered(isPublicAddress, 'AAAA')
    expect(ipv6?.rdatas.map(({ head }) => Buffer.from(head).toString('hex'))).toEqual([
      '26064700470000000000000000001111',
    ])
    expect(await answered(isPublicAddress, 'A', onlyPrivate)).toEqual({ rdatas: [], ttl: 30 })
    expect((await answered(() => true, 'A'))?.rdatas).toHaveLength(addresses.A.length)
  })

  test('are left out by the nameservers in production, and answered in development', async () => {
    const world = await startWorld()
    await world.newDomain('alias.com')
    await world.record('alias.com', 'ALIAS', '@', 'inside.example.net')
    await world.record('alias.com', 'ALIAS', 'hidden', 'hidden.example.net')
    const { deps } = world
    for (const production of [true, false]) {
      const nameserver = createNameserver({
        ...deps,
        config: { ...deps.config, production },
        resolveAlias: (name, type) => (name.startsWith('hidden') ? onlyPrivate : resolve)(name, type),
      })
      const [{ port } = { port: 0 }] = await nameserver.listen()
      const { answer } = await askUdp(port, 'alias.com', 'A')
      expect(addressesIn(answer).sort()).toEqual(production ? ['8.8.8.8'] : [...addresses.A].sort())
      const hidden = await askUdp(port, 'hidden.alias.com', 'A')
      expect([hidden.rcode, addressesIn(hidden.answer)]).toEqual(['NOERROR', production ? [] : ['10.0.0.1']])
      await nameserver.close()
    }
    await world.stop()
  })
})

describe('an answer', () => {
  test('waits for an address that is not known yet', async () => {
    const asked = Promise.withResolvers<void>()
    const address = Promise.withResolvers<Awaited<ReturnType<ResolveAlias>>>()
    served = await serveZones({
      resolveAlias: () => {
        asked.resolve()
        return address.promise
      },
    })
    served.put('example.com', '@ ALIAS host.example.net')
    const asking = askUdp(served.port, 'eXample.com', 'A', { edns: 1232 })
    await asked.promise
    address.resolve([{ address: '192.0.2.7', ttl: 60 }])
    const message = await asking
    expect([message.rcode, addressesIn(message.answer), message.answer[0]!.name]).toEqual([
      'NOERROR',
      ['192.0.2.7'],
      'eXample.com',
    ])
  })

  test('is SERVFAIL after a second without one, and at once where the resolver failed just now', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
    const asked: string[] = []
    served = await serveZones({
      resolveAlias: (name) => {
        asked.push(name)
        return name === 'failing.example.net' ? Promise.reject(new Error('no')) : new Promise(() => {})
      },
    })
    served.put('example.com', '@ ALIAS host.example.net\nfails ALIAS failing.example.net')
    let answered = false
    const waiting = askUdp(served.port, 'example.com', 'A').finally(() => {
      answered = true
    })
    await until(() => asked.length === 1)
    vi.advanceTimersByTime(999)
    // No time passes for these, and one of them is asked for once.
    for (let count = 0; count < 3; count++) {
      expect((await askUdp(served.port, 'fails.example.com', 'A')).rcode).toBe('SERVFAIL')
    }
    expect(asked).toEqual(['host.example.net', 'failing.example.net'])
    expect((await askUdp(served.port, 'example.com', 'MX')).rcode).toBe('NOERROR')
    expect(answered).toBe(false)
    vi.advanceTimersByTime(1)
    expect((await waiting).rcode).toBe('SERVFAIL')
  })
})
