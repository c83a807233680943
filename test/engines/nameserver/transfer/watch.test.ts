// Whether secondaries serve what they were told of: they are told again until they do, and who owns the zone is told too.
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createSigner, readTsig, type Tsig } from '../../../../src/dns/packet/tsig.ts'
import { wireName } from '../../../../src/dns/packet/wire-names.ts'
import type { Probe } from '../../../../src/dns/soa-probe.ts'
import type { Lag } from '../../../../src/engines/nameserver/transfer/lag.ts'
import { createWatch, type Watch } from '../../../../src/engines/nameserver/transfer/watch.ts'
import { freePort } from '../../../helpers/ports.ts'
import { until } from '../../../helpers/until.ts'
import { silent } from './offline.ts'
import { impatient, isMissing, keyName, type Peer, run, secret, startPeer, startWorld, type World } from './world.ts'

const zone = wireName('w.test')
const secondary = { address: '192.0.2.53:53', host: '192.0.2.53' }

describe('a watch', () => {
  let watch: Watch
  afterEach(() => watch.close())

  type Setup = {
    probe(zone: string, count: number): Probe
    serialOf?(origin: string): number | null
    begin?(lag: Lag): Promise<void>
    end?(): Promise<void>
    known?: Omit<Lag, 'served'>[]
    isNotified?(address: string): boolean
  }

  function start({
    probe,
    serialOf = () => 5,
    begin = async () => {},
    end = async () => {},
    known = [],
    isNotified,
  }: Setup) {
    const seen = { begun: [] as Lag[], checked: [] as unknown[], ended: 0, forgotten: 0, told: 0, probes: 0 }
    watch = createWatch({
      secondaries: [secondary],
      isNotified: (_origin, address) => isNotified?.(address) ?? address === secondary.address,
      catalog: wireName('catalog.invalid'),
      serialOf,
      notify: () => void seen.told++,
      store: {
        async begin(lag) {
          await begin(lag)
          seen.begun.push(lag)
        },
        async end() {
          await end()
          seen.ended++
        },
        async checked(check) {
          seen.checked.push(check)
        },
        async forget() {
          seen.forgotten++
        },
        known: async () => known,
      },
      log: silent,
      probe: async (_address, name) => probe(name, ++seen.probes),
      delaysMs: { first: 2, min: 4, max: 8 },
    })
    return seen
  }
  const noticed = (acknowledged = true, changed = true) => watch.noticed(zone, secondary, { acknowledged, changed })
  const behind: Probe = { serial: 4, error: null }
  const current: Probe = { serial: 5, error: null }

  test('has a secondary told again until it is current, and notes that it lags once, and that it does no more', async () => {
    const seen = start({ probe: (_zone, count) => (count < 5 ? behind : current) })
    noticed()
    await until(() => seen.ended === 1)
    expect(seen.begun).toMatchObject([
      { origin: zone, secondary: secondary.address, served: 4, reason: 'not_transferred' },
    ])
    expect(seen.told).toBe(4)
    expect(watch.lags()).toEqual([{ secondary: secondary.address, zones: 0, oldestSeconds: 0 }])
  })

  test('goes on with a change that is noticed while the end of a lag is stored', async () => {
    let serial = 5
    let has = 4
    let store!: () => void
    const stored = new Promise<void>((resolve) => (store = resolve))
    let ending = 0
    const seen = start({
      serialOf: () => serial,
      probe: () => ({ serial: has, error: null }),
      async end() {
        ending++
        await stored
      },
    })
    noticed()
    await until(() => seen.begun.length === 1)
    has = 5
    await until(() => ending === 1)
    serial = 6
    noticed()
    store()
    await until(() => seen.begun.length === 2)
    has = 6
    await until(() => seen.ended === 2)
  })

  test('ends a lag later that the store could not end', async () => {
    let failures = 0
    let has = 4
    const seen = start({
      probe: () => ({ serial: has, error: null }),
      async end() {
        if (failures++ < 2) throw new Error('no database')
      },
    })
    noticed()
    await until(() => seen.begun.length === 1)
    has = 5
    await until(() => seen.ended === 1)
    expect(seen.begun.length).toBe(1)
  })

  test('notes what a secondary of a customer served, once for each result, and none of the platform’s own', async () => {
    const other = { address: '198.51.100.53:53', host: '198.51.100.53' }
    const told = new Set([secondary.address, other.address])
    const seen = start({
      probe: (_zone, count) => (count < 12 ? behind : current),
      isNotified: (address) => told.has(address),
    })
    watch.noticed(zone, other, { acknowledged: true, changed: true })
    noticed()
    await until(() => seen.checked.length === 2)
    const check = { origin: zone, secondary: other.address }
    expect(seen.checked).toEqual([
      { ...check, serial: 4, error: null },
      { ...check, serial: 5, error: null },
    ])
  })

  test('leaves one alone that has the zone at the first look', async () => {
    const seen = start({ probe: () => current })
    noticed()
    await until(() => seen.probes === 1)
    noticed()
    await until(() => seen.probes === 2)
    expect(seen).toMatchObject({ begun: [], ended: 0, told: 0 })
  })

  const answered: [string, Probe, boolean, number | null][] = [
    ['not_notified', behind, false, null],
    ['not_transferred', behind, true, null],
    ['rejected', behind, true, 5],
    ['not_transferred', behind, true, 4],
    ['not_served', { serial: null, error: 'not_served' }, true, null],
    ['rejected', { serial: null, error: 'not_served' }, true, 5],
    ['timeout', { serial: null, error: 'timeout' }, false, null],
    ['refused', { serial: null, error: 'refused' }, true, 5],
  ]
  test.each(answered)('says %s of %j, acknowledged %s, sent %s', async (reason, probe, acknowledged, sent) => {
    const seen = start({ probe: () => probe })
    if (sent !== null) watch.sent(zone, secondary.host, sent)
    noticed(acknowledged)
    await until(() => seen.begun.length > 0)
    expect(seen.begun[0]!.reason).toBe(reason)
    expect(watch.lags()[0]!.zones).toBe(1)
  })

  test('notes nothing of a zone that keeps changing while the secondary follows', async () => {
    let serial = 5
    let has = 5
    const follow = (): Probe => {
      const before = has
      has = serial
      return { serial: before, error: null }
    }
    const seen = start({ serialOf: () => serial, probe: follow })
    noticed()
    for (let step = 0; step < 10; step++) {
      const before = seen.probes
      serial++
      noticed()
      await until(() => seen.probes > before)
    }
    expect(seen.begun).toEqual([])
  })

  test('does not take a secondary that is silent at the start for one that lags, but one that is behind', async () => {
    const quiet = start({ probe: () => ({ serial: null, error: 'timeout' }) })
    noticed(false, false)
    await until(() => quiet.probes > 5)
    expect(quiet.begun).toEqual([])
    watch.close()
    const late = start({ probe: () => behind })
    noticed(true, false)
    await until(() => late.begun.length === 1)
  })

  test('asks a secondary that never answers for some of thousands of zones, and notes them all', async () => {
    const seen = start({ probe: () => ({ serial: null, error: 'timeout' }) })
    for (let n = 0; n < 3_000; n++) {
      watch.noticed(wireName(`z${n}.test`), secondary, { acknowledged: false, changed: true })
    }
    await until(() => seen.begun.length === 3_000)
    expect(seen.probes).toBeLessThan(1_000)
    expect(watch.lags()[0]!.zones).toBe(3_000)
  })

  test('goes on while the lag cannot be noted, and notes it when it can', async () => {
    let fails = 3
    const seen = start({
      probe: (_zone, count) => (count < 12 ? behind : current),
      async begin() {
        if (fails-- > 0) throw new Error('the database is away')
      },
    })
    noticed()
    await until(() => seen.ended === 1)
    expect(seen.begun.length).toBeGreaterThan(0)
  })

  test('ends what the process before it noted, and forgets what is told no more', async () => {
    const since = new Date(Date.now() - 60_000)
    const seen = start({
      probe: () => current,
      known: [
        { origin: zone, secondary: secondary.address, reason: 'timeout', since },
        { origin: zone, secondary: '192.0.2.99:53', reason: 'timeout', since },
      ],
    })
    await until(() => seen.ended === 1 && seen.forgotten === 1)
    expect(seen.begun).toEqual([])
  })
})

describe('a secondary that loses NOTIFY', () => {
  let world: World
  let socket: Socket
  let serial: number
  let hears: boolean
  beforeAll(async () => {
    socket = createSocket('udp4')
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    socket.on('message', (message, peer) => {
      const answer = answerOf(message)
      if (answer) socket.send(answer, peer.port, peer.address)
    })
    hears = true
    serial = 2 ** 31 - 1
    world = await startWorld([`127.0.0.1:${socket.address().port}`], impatient)
  })
  afterAll(async () => {
    await world?.stop()
    socket.close()
  })

  function answerOf(message: Buffer): Buffer | null {
    if ((message[2]! & 0x78) === 0) {
      const soa = Buffer.alloc(36)
      for (const [index, value] of [0xc00c, 6, 1, 0, 60, 24, 0xc00c, 0xc00c].entries())
        soa.writeUInt16BE(value, 2 * index)
      soa.writeUInt32BE(serial, 16)
      const answer = Buffer.concat([message, soa])
      answer.writeUInt16BE(0x8400, 2)
      answer.writeUInt16BE(1, 6)
      return answer
    }
    if (!hears) return null
    const tsig = readTsig(message) as Tsig
    const plain = Buffer.from(message.subarray(0, tsig.start))
    plain[2]! |= 0x80
    plain.writeUInt16BE(plain.readUInt16BE(10) - 1, 10)
    const key = { name: keyName, secret: Buffer.from(secret, 'base64') }
    return createSigner(key, tsig.mac, () => Math.floor(Date.now() / 1000))(plain)
  }

  const events = async () => (await world.api.call('GET', '/events?type=dns.secondary.*&order=asc')).body.events
  const address = () => `127.0.0.1:${socket.address().port}`
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came, whatever its shape.
  const status = async (): Promise<any> => {
    const { body } = await world.api.call('GET', '/dns/lost.dev/zone/status')
    return body.nameservers.find((one: { address: string }) => one.address === address())
  }

  test('is told again until it is current; its owner hears of both, and the status says why', async () => {
    await world.addDomain('lost.dev')
    serial = await world.settled('lost.dev')
    hears = false
    await world.addRecord('lost.dev', 'A', 'a', '192.0.2.1')
    const wanted = await world.settled('lost.dev')
    await until(async () => (await events()).length === 1)
    const [begun] = await events()
    expect(begun).toMatchObject({
      type: 'dns.secondary.lagging',
      actor: 'system',
      subject: 'lost.dev',
      data: { domain: 'lost.dev', secondary: address(), serial: wanted, served: serial, error: 'not_notified' },
    })
    expect(await status()).toMatchObject({ serial, current: false, error: 'not_notified', since: begun.data.since })
    expect((await status()).reason).toMatch(/NOTIFY/)
    hears = true
    await until(async () => (await status()).error === 'not_transferred')
    serial = wanted
    await until(async () => (await events()).length === 2)
    expect((await events())[1]).toMatchObject({ type: 'dns.secondary.current', data: { served: wanted, error: null } })
    expect(await status()).toMatchObject({ current: true, error: null, reason: null, since: null })
    expect(await world.api.db.secondaryLag.count()).toBe(0)
  })
})

describe.skipIf(isMissing('named', 'kdig'))('BIND', () => {
  test('that refuses a zone for something in it is told apart from one that was not told', async () => {
    const port = await freePort()
    const world = await startWorld([`127.0.0.1:${port}`], impatient)
    await world.addDomain('full.dev')
    const key = `key "${keyName}" { algorithm hmac-sha256; secret "${secret}"; };`
    let bind: Peer | undefined
    try {
      bind = await startPeer(
        'named',
        (directory) => ['-g', '-n', '1', '-c', `${directory}/named.conf`],
        (directory) => ({
          'named.conf': `${key}
            options { directory "${directory}"; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };
              pid-file none; session-keyfile none; recursion no; allow-query { any; }; max-records 20; };
            controls {};
            zone "full.dev" { type secondary; file "full.dev"; primaries { 127.0.0.1 port ${world.port} key "${keyName}"; };
              allow-notify { key "${keyName}"; }; };`,
        }),
      )
      const served = () =>
        run('kdig', ['@127.0.0.1', '-p', String(port), '+retry=0', '+time=1', '+short', 'SOA', 'full.dev'])
      await until(async () => (await served()) !== '')
      const rows = Array.from({ length: 40 }, (_, n) => ({ type: 'A', name: `h${n}`, value: '192.0.2.1' }))
      await world.api.call('POST', '/dns/full.dev/records/batch', { body: { create: rows } })
      const status = async () => {
        const { body } = await world.api.call('GET', '/dns/full.dev/zone/status')
        return body.nameservers.at(-1)
      }
      await until(async () => (await status()).error === 'rejected').catch(async (error) => {
        throw new Error(`${error}\n${JSON.stringify(await status())}\n${bind!.output()}`)
      })
      expect((await status()).reason).toMatch(/rejects something/)
    } finally {
      await bind?.stop()
      await world.stop()
    }
  })
})
