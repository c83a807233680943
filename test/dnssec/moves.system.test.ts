// A signed zone moves in from another provider, and out to it again, by the steps of docs/guides/moving-signed-domains.md,
// while validating resolvers ask all the time: every answer is proved, and none is bogus.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { addressesIn } from '../engines/nameserver/packets.ts'
import { isMissing, type Peer } from '../engines/nameserver/transfer/world.ts'
import { until } from '../helpers/until.ts'
import { type Checker, type Question, resolve, startChecker } from './checker.ts'
import { type OtherProvider, startOtherProvider } from './other-provider.ts'
import { startResolver } from './peers.ts'
import { type DnssecWorld, mayServe, nameservers, startDnssecWorld } from './world.ts'

vi.setConfig({ testTimeout: 280_000, hookTimeout: 240_000 })

const programs = ['unbound', 'named', 'knotd', 'dig', 'dnssec-signzone', 'dnssec-keygen']
const possible = !isMissing(...programs) && (await mayServe())

const zone = 'signed.com'
const otherHost = 'ns.other.com'
const [A, TXT] = [1, 16]
/** What the most patient resolver keeps, in seconds. */
const maxTtl = 3
let count = 0
const fresh = () => `n${++count}`

const questions: Question[] = [
  ...['', 'host.'].map((part): Question => {
    const isRight: Question['isRight'] = ({ rcode, answer }) =>
      rcode === 'NOERROR' && addressesIn(answer).join() === '192.0.2.1'
    return { name: `${part}${zone}`, type: A, isRight }
  }),
  { name: `host.${zone}`, type: TXT, isRight: ({ rcode, answer }) => rcode === 'NOERROR' && answer.length === 0 },
  { name: () => `${fresh()}.${zone}`, type: A, isRight: ({ rcode }) => rcode === 'NXDOMAIN' },
  {
    name: () => `${fresh()}.wild.${zone}`,
    type: A,
    isRight: ({ answer }) => addressesIn(answer).join() === '192.0.2.1',
  },
  { name: zone, type: 48, isRight: ({ rcode }) => rcode === 'NOERROR' },
]
const names = ['@', 'host', '*.wild']
const lines = names.map((name) => `${name} IN A 192.0.2.1`)

describe.skipIf(!possible)('a signed zone', () => {
  let world: DnssecWorld
  let other: OtherProvider
  let checker: Checker
  let proof = ''
  /** Each has the keys from the one provider, and the records of a name from the other. */
  const crossed: { address: string; peer: Peer }[] = []
  const resolvers: { name: string; address: string; peer: Peer }[] = []

  const call = async (method: string, path: string, body?: object) => {
    const { status, body: answer, text } = await world.api.call(method, path, body && { body })
    if (status >= 300) throw new Error(text)
    return answer
  }
  const dnssec = `/dns/${zone}/dnssec`
  const glue = (address: string) => [`${otherHost}. IN A ${address}`]
  let otherAddress = ''
  /** What the registry has, and all caches after it. */
  async function register(phase: string, hosts: readonly string[], ds: readonly string[]): Promise<void> {
    checker.phase = phase
    await world.parents.set('com', [
      ...hosts.map((host) => `${zone}. IN NS ${host}.`),
      ...ds.map((text) => `${zone}. IN DS ${text}`),
      ...glue(otherAddress),
    ])
    await forgotten()
  }
  const forgotten = () => sleep((maxTtl + 0.5) * 1_000)

  beforeAll(async () => {
    world = await startDnssecWorld(zone, new Map())
    otherAddress = world.servers.ns1.replace(/\d+$/, '50')
    other = await startOtherProvider(zone, otherHost, otherAddress)
    const { address, ...all } = world.resolvers[0]!
    const patient = address.replace(/\d+$/, '51')
    resolvers.push({ address, ...all })
    resolvers.push({
      name: 'patient',
      address: patient,
      peer: await startResolver(patient, world.parents, [], { maxTtl, isStrict: true }),
    })
    await other.set(lines, [])
    const sides = [otherAddress, world.servers.ns1]
    for (const [index, keys] of sides.entries()) {
      const address = patient.replace(/\d+$/, String(52 + index))
      const stubs = [
        { zone, server: keys },
        { zone: `host.${zone}`, server: sides[1 - index]! },
      ]
      crossed.push({ address, peer: await startResolver(address, world.parents, stubs, { isStrict: true }) })
    }
    checker = startChecker([], [], 0)
    await register('before', [otherHost], [other.ds])
    await call('POST', '/domains', { project: 'site', name: zone })
    const { verification } = await call('GET', `/domains/${zone}`)
    const { name, value } = verification.txt
    proof = `${name}. IN TXT "${value}"`
    await other.set([...lines, proof], [])
    for (const name of names)
      await call('POST', `/dns/${zone}/records`, { type: 'A', name, value: '192.0.2.1', ttl: 300 })
    await until(async () => {
      await call('POST', `/domains/${zone}/verify`).catch(() => {})
      return (await call('GET', `/domains/${zone}`)).verified
    }, 60_000)
    for (const { address } of resolvers) {
      await until(async () => (await resolve(address, `host.${zone}`, A))?.proved ?? false, 60_000)
    }
    checker = startChecker(resolvers, questions, 5)
    checker.secure = true
  })
  afterAll(async () => {
    await checker?.stop()
    for (const { peer } of [...resolvers.slice(1), ...crossed]) await peer.stop()
    await other?.stop()
    await world?.stop()
  })

  /** The keys that each provider shows prove what the other one answers. */
  async function proveEachOther(): Promise<void> {
    for (const { address, peer } of crossed) {
      const got = await resolve(address, `host.${zone}`, A)
      expect([got?.message.rcode, got?.proved, peer.output()]).toEqual(['NOERROR', true, expect.anything()])
    }
  }

  async function report(): Promise<void> {
    const { asked, proved, late, wrong } = checker
    console.log(`${asked} answers, ${proved} of them proved, ${wrong.length} wrong, bogus or not proved, ${late} late`)
    const logOf = ({ resolver, name }: { resolver: string; name: string }) => {
      const log = resolvers.find((one) => one.name === resolver)!.peer.output()
      return log.split('\n').filter((line) => line.includes(name))
    }
    expect(wrong.slice(0, 5).map((one) => ({ ...one, log: logOf(one) }))).toEqual([])
    expect(asked).toBeGreaterThan(500)
    expect(proved).toBe(asked)
  }

  test('moves in, every answer proved', async () => {
    checker.phase = 'keys of the other provider here'
    await call('PUT', `${dnssec}/foreign-keys`, { keys: other.keys })
    await call('PUT', dnssec, { enabled: true })
    await world.reaches(({ state }) => state === 'SIGNING')
    await world.settled()
    await world.later(2)
    const { dnskey, ds } = await world.reaches(({ state }) => state === 'AWAITING_DS')
    await world.settled()

    checker.phase = 'our key at the other provider'
    await other.set([...lines, proof], dnskey)
    await forgotten()
    await register('both DS records', [otherHost], [other.ds, ds[0].text])
    await world.reaches(({ state }) => state === 'ACTIVE')
    await register('both delegated', [otherHost, ...nameservers], [other.ds, ds[0].text])
    await proveEachOther()
    await register('delegated here', nameservers, [other.ds, ds[0].text])
    await register('our DS alone', nameservers, [ds[0].text])

    checker.phase = 'our key alone'
    await call('PUT', `${dnssec}/foreign-keys`, { keys: [] })
    await world.settled()
    await forgotten()
    const { reason, foreignKeys, state } = await call('GET', dnssec)
    expect({ reason, foreignKeys, state }).toMatchObject({ foreignKeys: [], state: 'ACTIVE' })
    await report()
  })

  test('moves out, every answer proved', async () => {
    const { dnskey, ds } = await call('GET', dnssec)
    checker.phase = 'keys at both'
    await call('PUT', `${dnssec}/foreign-keys`, { keys: other.keys })
    await other.set(lines, dnskey)
    await world.settled()
    await forgotten()
    await register('both DS records again', nameservers, [other.ds, ds[0].text])
    await register('delegated away', [otherHost], [other.ds, ds[0].text])
    await proveEachOther()
    await register('the other DS alone', [otherHost], [other.ds])

    checker.phase = 'signing ends here'
    await call('PUT', dnssec, { enabled: false })
    await world.settled()
    // The parent may read it from here until caches have the delegation no more: it must not remove the other DS.
    expect(await world.digAt(world.servers.ns1, zone, 'CDS', '+short')).not.toMatch(/^0 0 0/m)
    expect((await world.digAt(world.servers.ns1, zone, 'CDS', '+short')).split('\n').filter(Boolean)).toHaveLength(1)
    await other.set(lines, [])
    await forgotten()
    await call('DELETE', `/domains/${zone}`)
    await forgotten()
    await checker.stop()
    await report()
  })
})
