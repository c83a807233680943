// Two nameservers have the same signatures in a version of a zone, whichever versions each of them has seen.
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { wireName } from '../../../../src/dns/packet/wire-names.ts'
import { createNameserver, type Nameserver } from '../../../../src/engines/nameserver/server.ts'
import { entriesOf } from '../../../../src/engines/nameserver/zones/signing.ts'
import { RecordsByName } from '../../../../src/engines/nameserver/zones/zone-records.ts'
import { createZoneKey } from '../../../../src/services/dns/dnssec/zone-keys.ts'
import { seededRandom } from '../../../helpers/seed.ts'
import { until } from '../../../helpers/until.ts'
import { isMissing, startWorld, type World } from '../transfer/world.ts'
import { faultsOf, signZone, transferred } from './world.ts'

const { randomInt } = seededRandom()

let world: World
let other: Nameserver
/** Has the other one read a zone: it hears of no change by itself. */
let tell = (_name: string) => {}
beforeAll(async () => {
  world = await startWorld()
  const { config, db, deps } = world.api
  const notifications = {
    ...deps.notifications,
    connected: true,
    on(topic: 'zone', listener: (name: string) => void) {
      if (topic !== 'zone') return deps.notifications.on(topic, listener)
      tell = listener
      return () => {}
    },
  } as typeof deps.notifications
  other = createNameserver({ config, db, notifications, vault: deps.vault, log: pino({ level: 'silent' }) })
  await other.listen()
})
afterAll(async () => {
  await other.close()
  await world.stop()
})

function signaturesAt({ snapshot }: Nameserver, zone: string): Map<string, string> {
  return new Map(entriesOf(snapshot!.table.get(zone)!.signing!.signatures))
}

async function agree(zone: string): Promise<Map<string, string>> {
  const serial = await world.settled(zone)
  tell(zone)
  await until(() => other.snapshot!.table.get(zone)?.serial === serial)
  const signatures = signaturesAt(world.nameserver, zone)
  expect(signaturesAt(other, zone)).toEqual(signatures)
  return signatures
}

/** Of a name, or of all; by the first nameserver, which has the zone as it is. */
async function renew(zone: string, name?: string): Promise<void> {
  const { db } = world.api
  const owner = name && { name: Buffer.from(wireName(`${name}.${zone}`), 'latin1') }
  await db.zoneSignature.updateMany({ where: { ...owner, renewAt: { not: null } }, data: { renewAt: new Date(0) } })
  await world.settled(zone)
  await world.nameserver.snapshot!.renewSignatures()
}

const remove = (zone: string, id: string) => world.api.call('DELETE', `/dns/${zone}/records/${id}`)

test('what was signed anew while one of them did not look is not taken over from before', async () => {
  const zone = 'agreed.dev'
  await world.addDomain(zone)
  const again = () => world.addRecord(zone, 'A', 'again', '192.0.2.1')
  const first = await again()
  await world.addRecord(zone, 'A', 'stays', '192.0.2.2')
  await signZone(world, zone)
  const before = await agree(zone)
  const changed = (signatures: Map<string, string>) =>
    [...signatures].filter(([key, octets]) => before.has(key) && before.get(key) !== octets).length
  await remove(zone, first)
  await renew(zone, 'again')
  await again()
  const made = changed(await agree(zone))
  expect(made).toBeGreaterThan(0)
  await renew(zone, 'stays')
  await world.addRecord(zone, 'A', 'more', '192.0.2.3')
  expect(changed(await agree(zone))).toBeGreaterThan(made)
})

test('one that has a zone as a whole renews it for one that has it by name', async () => {
  const zone = 'shrunk.dev'
  const { db, call } = world.api
  const change = async (body: object) => {
    expect((await call('POST', `/dns/${zone}/records/batch`, { body })).status).toBe(200)
    await world.settled(zone)
  }
  const some = (count: number, prefix: string) =>
    Array.from({ length: count }, (_, index) => ({ type: 'A', name: `${prefix}-${index}`, value: '192.0.2.9' }))
  const isByName = ({ snapshot }: Nameserver) => snapshot!.table.get(zone)!.records instanceof RecordsByName
  await world.addDomain(zone)
  await change({ create: some(120, 'stays') })
  await signZone(world, zone)
  const before = await agree(zone)
  await change({ create: some(80, 'goes') })
  const gone = await db.dnsRecord.findMany({ where: { domain: { name: zone }, name: { startsWith: 'goes-' } } })
  await change({ delete: gone.map(({ id }) => id) })
  await agree(zone)
  expect([world.nameserver, other].map(isByName)).toEqual([true, false])
  await db.zoneSignature.updateMany({ data: { renewAt: new Date(0) }, where: { renewAt: { not: null } } })
  await other.snapshot!.renewSignatures()
  const after = await agree(zone)
  expect([...after].filter(([key, octets]) => before.get(key) === octets)).toEqual([])
})

test.each([
  ['a zone that is read as a whole', 'random.dev', 0],
  ['one that is read by name', 'larger.dev', 200],
])('they agree after any changes, renewals and changes of keys of %s', async (_what, zone, more) => {
  const { db, deps, call } = world.api
  await world.addDomain(zone)
  const create = Array.from({ length: more }, (_, index) => ({ type: 'A', name: `other-${index}`, value: '192.0.2.9' }))
  if (more > 0) expect((await call('POST', `/dns/${zone}/records/batch`, { body: { create } })).status).toBe(200)
  await signZone(world, zone)
  const { id: domainId } = await db.domain.findFirstOrThrow({ where: { name: zone } })
  const records = new Map<string, string>()
  const steps: string[] = []
  for (let step = 0; step < 80; step++) {
    const name = `n${randomInt(6)}`
    const kind = randomInt(20)
    const id = records.get(name)
    steps.push(`${kind} ${name}`)
    if (kind < 9) {
      if (id === undefined) records.set(name, await world.addRecord(zone, 'A', name, `192.0.2.${randomInt(3)}`))
      else {
        await remove(zone, id)
        records.delete(name)
      }
    } else if (kind < 15) await renew(zone, name)
    else if (kind < 17) await renew(zone)
    else if (kind === 17) {
      const dnssecDenial = randomInt(2) ? 'nsec' : 'nsec3'
      await db.domain.update({ where: { id: domainId }, data: { dnssecDenial } })
    } else if (kind === 18) {
      const use = { published: true, signing: true, announced: true }
      const { id: newest } = await db.zoneKey.create({ data: createZoneKey(deps.vault, domainId, use) })
      if (randomInt(2)) await db.zoneKey.deleteMany({ where: { domainId, id: { not: newest } } })
    }
    if (randomInt(3) > 0) continue
    await agree(zone).catch((error) => {
      throw new Error(`After ${steps.join(', ')}:`, { cause: error })
    })
  }
  await agree(zone)
  const source = world.nameserver.snapshot!.table.get(zone)!
  expect(source.records instanceof RecordsByName).toBe(more > 0)
  if (!isMissing('dig', 'dnssec-verify', 'ldns-verify-zone')) {
    expect(await faultsOf(zone, await transferred(world, zone))).toBe('')
  }
})
