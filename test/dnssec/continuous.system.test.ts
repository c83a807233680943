// A zone is signed, its DS set, its key replaced, its servers restarted, and it is unsigned again, while validating resolvers
// ask all the time: no answer is wrong, and none is refused.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { addressesIn } from '../engines/nameserver/packets.ts'
import { isMissing } from '../engines/nameserver/transfer/world.ts'
import { runCommand } from '../helpers/command.ts'
import { until } from '../helpers/until.ts'
import { type Checker, forgetDs, type Question, resolve, startChecker } from './checker.ts'
import { cacheTtl } from './peers.ts'
import { type DnssecWorld, mayServe, nameservers, platform, startDnssecWorld } from './world.ts'

vi.setConfig({ testTimeout: 400_000, hookTimeout: 240_000 })

const programs = ['unbound', 'named', 'knotd', 'dig', 'delv', 'dnssec-signzone', 'dnssec-keygen']
const possible = !isMissing(...programs) && (await mayServe())

// How long unbound remembers that nobody answered.
const forgottenMs = 6_000

const zone = 'signed.com'
const records: [type: string, name: string, value: string][] = [
  ['A', '@', '192.0.2.1'],
  ['MX', '@', `10 host.${zone}`],
  ['A', 'host', '192.0.2.2'],
  ['A', 'a.b.c', '192.0.2.5'],
  ['A', '*.wild', '192.0.2.6'],
  ['A', 'own.wild', '192.0.2.7'],
  ['CNAME', '*.wildc', `host.${zone}`],
  ['CNAME', 'chain', `host.${zone}`],
  ['DNAME', 'moved', `wild.${zone}`],
  ['ALIAS', 'flat', 'target.net'],
  ['ALIAS', 'inside', `host.${zone}`],
  ['NS', 'cut', 'a.tld'],
  ...Array.from({ length: 20 }, (_, index): [string, string, string] => [
    'TXT',
    'big',
    `"${index} ${'x'.repeat(100)}"`,
  ]),
]

const [A, CNAME, SOA, MX, TXT, AAAA, DS, DNSKEY, CDS, CDNSKEY, ANY] = [1, 5, 6, 15, 16, 28, 43, 48, 59, 60, 255]
let count = 0
const fresh = () => `n${++count}-${process.pid}`

const addresses =
  (...wanted: string[]): Question['isRight'] =>
  (message) =>
    message.rcode === 'NOERROR' && addressesIn(message.answer).join() === wanted.join()
const some =
  (type: number, least = 1): Question['isRight'] =>
  (message) =>
    message.rcode === 'NOERROR' && message.answer.filter((one) => one.type === type).length >= least
const missing: Question['isRight'] = ({ rcode, answer }) => rcode === 'NXDOMAIN' && answer.length === 0
const noData: Question['isRight'] = ({ rcode, answer }) => rcode === 'NOERROR' && answer.length === 0
const answered: Question['isRight'] = ({ rcode }) => rcode === 'NOERROR'
const anyWay: Question['isRight'] = ({ rcode }) => rcode === 'NOERROR' || rcode === 'NXDOMAIN'

const questions: Question[] = [
  { name: zone, type: A, isRight: addresses('192.0.2.1') },
  { name: zone, type: SOA, isRight: some(SOA) },
  { name: zone, type: MX, isRight: some(MX) },
  { name: `host.${zone}`, type: A, isRight: addresses('192.0.2.2') },
  { name: `www.${zone}`, type: A, isRight: addresses('192.0.2.80') },
  { name: () => `${fresh()}.wild.${zone}`, type: A, isRight: addresses('192.0.2.6') },
  { name: () => `${fresh()}.wild.${zone}`, type: AAAA, isRight: noData },
  { name: `own.wild.${zone}`, type: A, isRight: addresses('192.0.2.7') },
  { name: () => `${fresh()}.${fresh()}.wildc.${zone}`, type: A, isRight: addresses('192.0.2.2') },
  { name: () => `${fresh()}.${zone}`, type: A, isRight: missing },
  { name: () => `${fresh()}.host.${zone}`, type: TXT, isRight: missing },
  { name: `host.${zone}`, type: AAAA, isRight: noData },
  { name: `b.c.${zone}`, type: A, isRight: noData },
  { name: `chain.${zone}`, type: A, isRight: addresses('192.0.2.2') },
  { name: `chain.${zone}`, type: CNAME, isRight: some(CNAME) },
  { name: () => `${fresh()}.moved.${zone}`, type: A, isRight: addresses('192.0.2.6') },
  { name: `flat.${zone}`, type: A, isRight: addresses('192.0.2.99') },
  { name: `flat.${zone}`, type: AAAA, isRight: noData },
  { name: `inside.${zone}`, type: A, isRight: addresses('192.0.2.2') },
  { name: `host.cut.${zone}`, type: A, isRight: addresses('192.0.2.77'), insecure: true },
  { name: `cut.${zone}`, type: DS, isRight: noData },
  { name: `big.${zone}`, type: TXT, isRight: some(TXT, 20) },
  { name: zone, type: DNSKEY, isRight: answered },
  { name: zone, type: CDS, isRight: answered },
  { name: zone, type: DS, isRight: answered },
  { name: `host.${zone}`, type: ANY, isRight: answered },
  // These come and go.
  { name: `changing.${zone}`, type: A, isRight: anyWay },
  { name: `changing.wild.${zone}`, type: A, isRight: answered },
  { name: `x.y.${zone}`, type: A, isRight: anyWay },
]

describe.skipIf(!possible)('a zone below a signed root', () => {
  let world: DnssecWorld
  let checker: Checker
  let changing: Promise<void>
  let over = false
  let forgotten = Promise.resolve()

  const call = async (method: string, path: string, body?: object) => {
    const { status, body: answer, text } = await world.api.call(method, path, body && { body })
    if (status >= 300) throw new Error(text)
    return answer
  }
  const dnssec = `/dns/${zone}/dnssec`

  /** Records come and go all the time, beside everything else. */
  async function change(): Promise<void> {
    while (!over) {
      for (const name of ['changing', 'changing.wild', 'x.y']) {
        const { id } = await call('POST', `/dns/${zone}/records`, { type: 'A', name, value: '192.0.2.9', ttl: 30 })
        await sleep(150)
        await call('DELETE', `/dns/${zone}/records/${id}`)
      }
    }
  }

  /** A step of production: what was cached before is forgotten, and the clock of the zone's signing says so. */
  async function pass(phase: string): Promise<void> {
    checker.phase = phase
    await sleep((cacheTtl + 0.5) * 1_000)
  }

  /** A busy resolver forgets what it had before the DS later than others; from here on nothing may be unproved. */
  async function allProved(): Promise<void> {
    for (const { address } of world.resolvers) {
      for (const { name, type, insecure } of questions) {
        const owner = typeof name === 'string' ? name : name()
        if (!insecure) await until(async () => (await resolve(address, owner, type))?.proved ?? false, 60_000)
      }
    }
  }

  beforeAll(async () => {
    world = await startDnssecWorld(zone, new Map([[`cut.${zone}`, ['host IN A 192.0.2.77']]]))
    await world.setDs([])
    await call('POST', '/domains', { project: 'site', name: zone })
    for (const [type, name, value] of records) {
      await call('POST', `/dns/${zone}/records`, { type, name, value, ttl: 300 })
    }
    await until(async () => (await call('GET', `/domains/${zone}`)).verified, 60_000)
    const { ns1 } = world.servers
    await until(async () => (await world.digAt(ns1, `flat.${zone}`, 'A', '+short')).includes('192.0.2.99'), 60_000)
    await world.settled()
  })
  afterAll(async () => {
    over = true
    await changing?.catch(() => {})
    await checker?.stop()
    await world?.stop()
  })

  /** While its only server is started again, a resolver has nobody to ask; then it remembers that for some seconds. */
  async function without(server: 'ns1' | 'ns2', work: () => Promise<void>): Promise<void> {
    checker.excused.add(server)
    await work()
    forgotten = sleep(forgottenMs).then(() => void checker.excused.delete(server))
  }

  const proofs = [
    [zone, 'DNSKEY'],
    [`${fresh()}.${zone}`, 'A'],
    [`host.${zone}`, 'A'] as const,
    [`${fresh()}.wild.${zone}`, 'A'] as const,
  ] as const

  /** The records of a type that the resolver of all servers has proved; null if it has proved nothing. */
  async function provedTexts(name: string, type: number): Promise<string[] | null> {
    const got = await resolve(world.resolvers[0]!.address, name, type)
    if (!got?.proved) return null
    return got.message.answer.filter((one) => one.type === type).map(({ data }) => data.toString('hex'))
  }
  const signals = nameservers.map((host) => `_dsboot.${zone}._signal.${host}`)

  test('is below a platform whose own zone is signed on request, with all that it has', async () => {
    const environment = { ...world.environment, DATABASE_URL: world.api.databaseUrl }
    const { code, output } = await runCommand(['dnssec', 'on'], environment)
    expect([code, output]).toEqual([
      0,
      expect.stringMatching(new RegExp(`^${platform}\\. IN DS \\d+ 13 2 [0-9A-F]{64}$`, 'm')),
    ])
    for (const server of Object.values(world.servers)) {
      await expect
        .poll(() => world.digAt(server, platform, 'DNSKEY', '+short'), { timeout: 60_000 })
        .toMatch(/^257 3 13 /m)
    }
    await world.setPlatformDs([output.trim()])
    await expect.poll(() => provedTexts(platform, A), { timeout: 60_000 }).toEqual(['c0000250'])
    const { db } = world.api
    await db.acmeOrder.create({ data: { subject: 'order', directory: 'https://ca.test' } })
    const proof = { id: 'x', subject: 'order', type: 'dns-01', token: 'token', value: 'proof' }
    await db.acmeChallenge.create({ data: { ...proof, name: platform, zone: platform } })
    await db.platformZone.update({ where: { name: platform }, data: { serial: { increment: 1 } } })
    await expect.poll(() => provedTexts(`_acme-challenge.${platform}`, TXT), { timeout: 60_000 }).toHaveLength(1)
    for (const name of [`www.${platform}`, `${fresh()}.${platform}`]) {
      expect([name, await provedTexts(name, A)]).toEqual([name, ['c0000250']])
    }
    expect(await provedTexts(nameservers[0], A)).toHaveLength(1)
    expect(await provedTexts(nameservers[0], TXT)).toEqual([])
    for (const name of signals) expect([name, await provedTexts(name, CDS)]).toEqual([name, []])
  })

  test('has no wrong and no bogus answer at any server, from its first signature to its last', async () => {
    checker = startChecker(world.resolvers, questions, 5)
    changing = change()
    await pass('unsigned')

    await call('PUT', dnssec, { enabled: true })
    await world.reaches(({ state }) => state === 'SIGNING')
    await world.settled()
    await pass('signing')
    await world.later(2)
    const { ds } = await world.reaches(({ state }) => state === 'AWAITING_DS')
    await world.settled()
    // Any parent may take the DS from there (RFC 9615), and nothing is left of it when it has.
    const cds = await world.digAt(world.servers.bind, zone, 'CDS', '+short')
    expect(cds.trim().replace(/ (?=\S+$)/, '')).toBe(ds[0].text)
    for (const name of signals) {
      await expect.poll(() => provedTexts(name, CDS), { timeout: 60_000 }).toHaveLength(1)
      expect(await provedTexts(name, CDNSKEY)).toHaveLength(1)
      for (const server of Object.values(world.servers)) {
        await expect.poll(() => world.digAt(server, name, 'CDS', '+short'), { timeout: 60_000 }).toBe(cds)
      }
    }
    checker.phase = 'ds set'
    await world.setDs([ds[0].text])
    await world.reaches(({ state }) => state === 'ACTIVE')
    await pass('active')
    await allProved()
    checker.secure = true
    for (const name of signals) expect([name, await provedTexts(name, CDS)]).toEqual([name, []])
    expect(await world.unproved(proofs)).toEqual([])

    checker.phase = 'rollover'
    await call('POST', `${dnssec}/rollover`)
    await world.settled()
    await pass('both keys sign')
    await world.later(2)
    const announced = await world.reaches(({ ds: [one] }) => one.keyTag !== ds[0].keyTag)
    await world.settled()
    checker.phase = 'ds replaced'
    await world.setDs([announced.ds[0].text])
    await world.reaches(({ keys }) => keys[1]?.state === 'ACTIVE')
    await pass('new ds')
    await world.later(2)
    await world.reaches(({ keys }) => keys.length === 1)
    await world.settled()
    await pass('old key gone')
    expect(await world.unproved(proofs)).toEqual([])

    checker.phase = 'restart'
    await without('ns1', async () => {
      await world.restart(0, 'SIGTERM')
      await world.programs[0]!.ready()
    })
    await pass('restarted')
    checker.phase = 'restart without the database'
    await without('ns2', async () => {
      world.links[1]!.cut()
      await world.restart(1, 'SIGKILL')
      await expect
        .poll(() => world.digAt(world.servers.ns2, `host.${zone}`, 'A', '+dnssec'), { timeout: 60_000 })
        .toContain('RRSIG')
    })
    await pass('without the database')
    await world.links[1]!.mend()
    await world.programs[1]!.ready()
    await world.settled()

    checker.phase = 'nsec3'
    await call('PUT', dnssec, { enabled: true, denial: 'nsec3' })
    await world.settled()
    await pass('nsec3')
    expect(await world.unproved(proofs)).toEqual([])

    checker.phase = 'leaving'
    await call('PUT', dnssec, { enabled: false })
    await world.settled()
    for (const server of Object.values(world.servers)) {
      expect(await world.digAt(server, zone, 'CDS', '+short')).toMatch(/^0 0 0 00$/m)
    }
    checker.secure = false
    await world.setDs([])
    await world.reaches(({ parent }) => parent.ds.length === 0)
    await forgetDs(world.resolvers, zone)
    await world.later(2)
    await world.reaches(({ state }) => state === 'UNSIGNED')
    await world.settled()
    await pass('unsigned again')
    await forgotten

    over = true
    await changing
    await checker.stop()
    const { asked, proved, late, wrong } = checker
    console.log(`${asked} answers, ${proved} of them proved, ${wrong.length} wrong or bogus, ${late} late`)
    expect(wrong.map((one) => ({ ...one, log: world.logOf(one.resolver, one.name) }))).toEqual([])
    expect(proved).toBeGreaterThan(asked / 10)
    expect(late).toBeLessThan(asked / 100)
  })
})
