// Signatures are renewed in time, whatever becomes of the zones of others.
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { wireName } from '../../../../src/dns/packet/wire-names.ts'
import { entriesOf } from '../../../../src/engines/nameserver/dnssec/signing.ts'
import { createNameserver } from '../../../../src/engines/nameserver/server.ts'
import type { ZoneTable } from '../../../../src/engines/nameserver/zone-table.ts'
import { until } from '../../../helpers/until.ts'
import { startWorld, type World } from '../transfer/world.ts'
import { signZone } from './world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.stop())

test('signatures of a claim that is served no more keep no others from being renewed', async () => {
  const { db, newAccount, newProject, call } = world.api
  for (const name of ['lost.dev', 'kept.dev']) {
    await world.addDomain(name)
    await signZone(world, name)
  }
  // Somebody else proves the name: the first claim has its key and its signatures still.
  const { token } = await newAccount()
  await newProject('other', { token })
  await call('POST', '/domains', { token, body: { project: 'other', name: 'lost.dev' } })
  const [lost, other] = await db.domain.findMany({ where: { name: 'lost.dev' }, orderBy: { id: 'asc' } })
  await db.domain.update({ where: { id: other!.id }, data: { verified: true, serial: { increment: 1 } } })
  const { table, renewSignatures } = world.nameserver.snapshot!
  await until(() => table.get('lost.dev')?.id === other!.id)
  const kept = await world.settled('kept.dev')
  await db.zoneSignature.updateMany({ data: { renewAt: new Date(0) } })
  await db.zoneSignature.updateMany({ where: { key: { domainId: lost!.id } }, data: { renewAt: new Date(-1) } })
  await renewSignatures()
  expect(await db.zoneSignature.count({ where: { renewAt: { lt: new Date() } } })).toBe(0)
  expect(await world.settled('kept.dev')).toBe(kept + 1)
})

test('nameservers have the same signatures in a version, whichever versions each of them has seen', async () => {
  const zone = 'agreed.dev'
  const { db, deps, config } = world.api
  await world.addDomain(zone)
  const record = () => world.addRecord(zone, 'A', 'again', '192.0.2.1')
  const first = await record()
  await world.addRecord(zone, 'A', 'stays', '192.0.2.2')
  await signZone(world, zone)
  // The other one hears of changes when it is told to.
  let tell = (_name: string) => {}
  const notifications = {
    ...deps.notifications,
    connected: true,
    on(topic: 'zone', listener: (name: string) => void) {
      if (topic !== 'zone') return deps.notifications.on(topic, listener)
      tell = listener
      return () => {}
    },
  } as typeof deps.notifications
  const other = createNameserver({ config, db, notifications, vault: deps.vault, log: pino({ level: 'silent' }) })
  await other.listen()
  try {
    const { table, renewSignatures } = world.nameserver.snapshot!
    const signaturesIn = (all: ZoneTable) => new Map(entriesOf(all.get(zone)!.signing!.signatures))
    const agree = async () => {
      const serial = await world.settled(zone)
      tell(zone)
      await until(() => other.snapshot!.table.get(zone)?.serial === serial)
      expect(signaturesIn(other.snapshot!.table)).toEqual(signaturesIn(table))
    }
    const renew = async (name: string) => {
      const owner = Buffer.from(wireName(`${name}.${zone}`), 'latin1')
      await db.zoneSignature.updateMany({
        where: { name: owner, renewAt: { not: null } },
        data: { renewAt: new Date(0) },
      })
      await renewSignatures()
    }
    await agree()
    const before = signaturesIn(table)
    // The other one has the signatures of a set that is gone, and then is there again with new ones.
    await world.api.call('DELETE', `/dns/${zone}/records/${first}`)
    await world.settled(zone)
    await renew('again')
    await record()
    await agree()
    const added = [...signaturesIn(table)].filter(([key, octets]) => before.has(key) && before.get(key) !== octets)
    expect(added.length).toBeGreaterThan(0)
    // The other one has the signatures that were renewed meanwhile, and then something else changes.
    await renew('stays')
    await world.addRecord(zone, 'A', 'more', '192.0.2.3')
    await agree()
    expect(new Set(signaturesIn(table).values())).not.toEqual(new Set(before.values()))
    // What it has seen, it takes over.
    await world.addRecord(zone, 'A', 'most', '192.0.2.4')
    await agree()
  } finally {
    await other.close()
  }
})
