// A large signed zone: complete before it is served, and after every change, which signs what it touches alone.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NameMap } from '../../../../src/engines/nameserver/zones/name-map.ts'
import { RecordsByName } from '../../../../src/engines/nameserver/zones/zone-records.ts'
import { newId } from '../../../../src/platform/ids.ts'
import { until } from '../../../helpers/until.ts'
import { isMissing, keyArgument, startWorld, type World } from '../transfer/world.ts'
import { faultsOf, signZone, transferred } from './world.ts'

const zone = 'large.dev'
const records = 400

const linesOf = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith(';'))
    .map((line) => line.replace(/\s+/g, ' '))

/** The answer to IXFR applied to the zone that it begins with; null if it is the whole zone. */
function applied(before: string, answer: string): string[] | null {
  const isSoa = (line: string) => / IN SOA /.test(line)
  const [first, ...rest] = linesOf(answer)
  if (!rest[0] || !isSoa(rest[0])) return null
  const has = new Set(linesOf(before))
  let adding = true
  for (const line of rest.slice(0, -1)) {
    if (isSoa(line)) adding = !adding
    if (adding) has.add(line)
    else has.delete(line)
  }
  return [...has].includes(first!) ? [...has].sort() : null
}

describe.skipIf(isMissing('dig', 'dnssec-verify', 'ldns-verify-zone')).each(['nsec', 'nsec3'] as const)(
  '%s',
  (denial) => {
    let world: World
    beforeAll(async () => {
      world = await startWorld()
      await world.addDomain(zone)
      const { db } = world.api
      const { id: domainId } = await db.domain.findFirstOrThrow({ where: { name: zone } })
      const now = new Date()
      const data = Array.from({ length: records }, (_, index) => ({
        id: newId('rec'),
        domainId,
        type: 'TXT',
        name: `a-name-of-some-length-${index}.${index % 10}`,
        value: `"${'a text that makes the zone a large one '.repeat(4)}${index}"`,
        ttl: 300,
        createdAt: now,
        updatedAt: now,
      }))
      await db.dnsRecord.createMany({ data })
      await db.domain.update({ where: { id: domainId }, data: { serial: { increment: 1 } } })
      await signZone(world, zone, denial)
      // Two changes, after which it is known what else changes.
      for (const name of ['host', 'other']) await world.addRecord(zone, 'A', name, '192.0.2.1')
      await world.settled(zone)
    })
    afterAll(() => world.stop())

    const source = () => world.nameserver.snapshot!.table.get(zone)!
    const signatures = () => source().signing!.signatures as NameMap<string>
    const whole = () => transferred(world, zone)
    const since = (serial: number) =>
      world.dig('-y', keyArgument, `IXFR=${serial}`, zone, '+noall', '+answer', '+nosplit', '+tcp')

    /** The zone as it is made from nothing, which must be the same. */
    async function readAgain(): Promise<string> {
      world.nameserver.snapshot!.table.apply([zone], [])
      await world.api.db.$executeRawUnsafe(`SELECT pg_notify('berth_zone', '${zone}')`)
      await until(() => world.nameserver.snapshot!.table.get(zone) !== undefined)
      expect(source().signing!.scope).toBeUndefined()
      return whole()
    }

    test('is signed completely', async () => {
      expect(source().records).toBeInstanceOf(RecordsByName)
      expect(await faultsOf(zone, await whole())).toBe('')
    })

    test('changes of any kind touch what they must, and come to secondaries as changes', async () => {
      const { call } = world.api
      const made = new Map<string, string>()
      const add = async (type: string, name: string, value: string) => {
        made.set(`${type} ${name}`, await world.addRecord(zone, type, name, value))
      }
      const remove = (record: string) => call('DELETE', `/dns/${zone}/records/${made.get(record)}`)
      const changes: (() => Promise<unknown>)[] = [
        () => add('A', 'new.3', '192.0.2.1'),
        () => add('A', 'a.b.c', '192.0.2.1'),
        () => add('A', '*.wild', '192.0.2.1'),
        () => add('MX', '@', '10 host.large.dev'),
        () => add('NS', 'cut', 'ns.example.net'),
        () => add('A', 'ns.cut', '192.0.2.3'),
        () => add('ALIAS', 'flat', 'host.large.dev'),
        () => add('A', 'host', '192.0.2.7'),
        () => add('CNAME', 'b.c', 'host.large.dev'),
        () => remove('A a.b.c'),
        () => remove('CNAME b.c'),
        () => remove('A ns.cut'),
        () => remove('NS cut'),
        () => remove('A *.wild'),
        () => remove('A new.3'),
      ]
      const first = { serial: source().serial, text: await whole() }
      for (const change of changes) {
        const before = signatures()
        await change()
        await world.settled(zone)
        expect(source().signing!.scope, change.toString()).toBeDefined()
        // What stays is shared, and so was not looked at.
        expect(before.shares(signatures())).toBe(true)
      }
      const text = await whole()
      expect(applied(first.text, await since(first.serial))).toEqual(linesOf(text).sort())
      expect(await faultsOf(zone, text)).toBe('')
      const { size } = signatures()
      expect(linesOf(await readAgain()).sort()).toEqual(linesOf(text).sort())
      expect(signatures().size).toBe(size)
    })

    test('a delegation of names that exist hides them', async () => {
      await world.addRecord(zone, 'NS', '3', 'ns.example.net')
      await world.settled(zone)
      const text = await whole()
      expect(text).toMatch(/^a-name-of-some-length-3\.3\.large\.dev\.\s+300\s+IN\s+TXT/m)
      expect(text).not.toMatch(/^a-name-of-some-length-3\.3\.large\.dev\.\s+300\s+IN\s+RRSIG/m)
    })

    test('renewed signatures are touched alone', async () => {
      const { db } = world.api
      for (const name of ['again', 'and-again']) await world.addRecord(zone, 'A', name, '192.0.2.1')
      await world.settled(zone)
      const before = { serial: source().serial, text: await whole() }
      const due = await db.zoneSignature.findMany({ where: { renewAt: { not: null }, type: { not: 6 } }, take: 40 })
      for (const { keyId, fingerprint } of due) {
        await db.zoneSignature.updateMany({ where: { keyId, fingerprint }, data: { renewAt: new Date(0) } })
      }
      await world.nameserver.snapshot!.renewSignatures()
      await world.settled(zone)
      expect(source().serial).toBeGreaterThan(before.serial)
      expect(source().signing!.scope).toBeDefined()
      const text = await whole()
      expect(applied(before.text, await since(before.serial))).toEqual(linesOf(text).sort())
      expect(linesOf(await readAgain()).sort()).toEqual(linesOf(text).sort())
    })
  },
)
