// A zone below a signed one that is here too: resolvers validate it from its first DS, through a rollover, until it is turned
// off or deleted, and then take it as not signed: never as bogus.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { addressesIn } from '../engines/nameserver/packets.ts'
import { isMissing, type Peer } from '../engines/nameserver/transfer/world.ts'
import { until } from '../helpers/until.ts'
import { forgetDs, type Question, resolve, startChecker } from './checker.ts'
import { cacheTtl, startResolver } from './peers.ts'
import { type DnssecWorld, mayServe, startDnssecWorld } from './world.ts'

vi.setConfig({ testTimeout: 280_000, hookTimeout: 240_000 })

const programs = ['unbound', 'named', 'knotd', 'dig', 'dnssec-signzone', 'dnssec-keygen']
const possible = !isMissing(...programs) && (await mayServe())

const zone = 'signed.com'
const below = `dev.${zone}`
const [A, TXT] = [1, 16]
let count = 0
const fresh = () => `n${++count}`

const has =
  (address: string): Question['isRight'] =>
  ({ rcode, answer }) =>
    rcode === 'NOERROR' && addressesIn(answer).join() === address
const questions: Question[] = [
  { name: below, type: A, isRight: has('192.0.2.2') },
  { name: `host.${below}`, type: A, isRight: has('192.0.2.3') },
  { name: `host.${below}`, type: TXT, isRight: ({ rcode, answer }) => rcode === 'NOERROR' && answer.length === 0 },
  { name: () => `${fresh()}.${below}`, type: A, isRight: ({ rcode }) => rcode === 'NXDOMAIN' },
  { name: `host.${zone}`, type: A, isRight: has('192.0.2.1') },
]

describe.skipIf(!possible)('a zone below a signed one', () => {
  let world: DnssecWorld
  let patient: Peer | undefined
  const call = async (method: string, path: string, body?: object) => {
    const { status, body: answer, text } = await world.api.call(method, path, body && { body })
    if (status >= 300) throw new Error(text)
    return answer
  }
  const dnssec = `/dns/${below}/dnssec`

  async function sign(name: string) {
    await call('PUT', `/dns/${name}/dnssec`, { enabled: true })
    await world.reaches(({ state }) => state === 'SIGNING', name)
    await world.settled(name)
    await world.later(2, name)
    return world.reaches(({ state }) => state !== 'SIGNING', name)
  }

  async function addBelow(): Promise<void> {
    await call('POST', '/domains', { project: 'site', name: below })
    await call('POST', `/dns/${below}/records`, { type: 'A', name: '@', value: '192.0.2.2', ttl: 300 })
    await call('POST', `/dns/${below}/records`, { type: 'A', name: 'host', value: '192.0.2.3', ttl: 300 })
    await until(async () => (await call('GET', `/domains/${below}`)).verified, 60_000)
    await world.settled(below)
  }

  beforeAll(async () => {
    world = await startDnssecWorld(zone, new Map())
    await world.setDs([])
    await call('POST', '/domains', { project: 'site', name: zone })
    await call('POST', `/dns/${zone}/records`, { type: 'A', name: 'host', value: '192.0.2.1', ttl: 300 })
    await until(async () => (await call('GET', `/domains/${zone}`)).verified, 60_000)
    const { ds } = await sign(zone)
    await world.setDs([ds[0].text])
    await world.reaches(({ state }) => state === 'ACTIVE')
    await addBelow()
  })
  afterAll(async () => {
    await patient?.stop()
    await world?.stop()
  })

  const pass = () => sleep((cacheTtl + 0.5) * 1_000)
  const isProved = (address: string) => async () => (await resolve(address, `host.${below}`, A))?.proved ?? false

  test('is never bogus, and always proved while it is signed', async () => {
    const resolvers = world.resolvers.filter(({ name }) => ['all', 'ns1', 'ns2'].includes(name))
    const checker = startChecker(resolvers, questions, 20)
    checker.phase = 'signing'
    await sign(below)
    await world.reaches(({ state }) => state === 'ACTIVE', below)
    for (const { address } of resolvers) await until(isProved(address))
    await pass()
    checker.secure = true

    checker.phase = 'rollover'
    const { keys: before } = await call('GET', dnssec)
    await call('POST', `${dnssec}/rollover`)
    await world.settled(below)
    await pass()
    await world.later(2, below)
    await world.reaches(({ keys }) => keys[1]?.state === 'ACTIVE', below)
    await pass()
    await world.later(2, below)
    const { keys: after } = await world.reaches(({ keys }) => keys.length === 1, below)
    expect(after[0].tag).not.toBe(before[0].tag)
    await world.settled(below)
    await pass()

    checker.secure = false
    checker.phase = 'leaving'
    await call('DELETE', dnssec)
    await world.settled()
    await world.reaches(({ parent }) => parent.ds.length === 0, below)
    await forgetDs(resolvers, below)
    await world.later(2, below)
    await world.reaches(({ state }) => state === 'UNSIGNED', below)
    await world.settled(below)
    await pass()
    await checker.stop()
    const { asked, proved, late, wrong } = checker
    console.log(`${asked} answers, ${proved} of them proved, ${wrong.length} wrong or bogus, ${late} late`)
    expect(wrong.map((one) => ({ ...one, log: world.logOf(one.resolver, one.name) }))).toEqual([])
    expect(proved).toBeGreaterThan(asked / 4)
  })

  test('is denied with a proof when it is deleted, also to who has cached its DS', async () => {
    await sign(below)
    await world.reaches(({ state }) => state === 'ACTIVE', below)
    const address = world.resolvers[0]!.address.replace(/\d+$/, '40')
    patient = await startResolver(address, world.parents, [], { maxTtl: 86_400, isStrict: true })
    await until(isProved(address))
    await call('DELETE', `/domains/${below}`)
    await world.settled()
    for (const type of [A, TXT]) {
      for (let left = 10; left > 0; left--) {
        const got = await resolve(address, `${fresh()}.${below}`, type)
        expect([got?.message.rcode, got?.proved]).toEqual(['NXDOMAIN', true])
      }
    }
  })
})
