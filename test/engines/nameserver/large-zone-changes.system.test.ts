// Changes of a large zone, from the API to the answer: the nameserver reads the names that changed, and nothing is missed.
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RecordsByName } from '../../../src/engines/nameserver/zones/zone-records.ts'
import { postgresUrl } from '../../helpers/database.ts'
import { until } from '../../helpers/until.ts'
import { addressesIn, askUdp } from './packets.ts'
import { startWorld, type World } from './world.ts'

const zone = 'large.com'
const hosts = 3_000

let world: World
beforeAll(async () => {
  world = await startWorld()
  await world.newDomain(zone)
  const lines = Array.from({ length: hosts }, (_, n) => `host-number-${n} A 10.0.${n >> 8}.${n & 255}\n`)
  await importZone(lines.join(''))
  await until(async () => (await addressOf(`host-number-${hosts - 1}`)) !== undefined)
})
afterAll(() => world.stop())

const importZone = (body: string) =>
  world.call('PUT', `/dns/${zone}/zone`, { body, headers: { 'content-type': 'text/dns', 'if-match': '*' } })
const addressOf = async (name: string) => addressesIn((await askUdp(world.ports[0]!, `${name}.${zone}`, 'A')).answer)[0]
const source = () => world.nameserver.snapshot!.table.get(zone)!
const records = () => source().records as RecordsByName

/** Whether memory has what the database has. */
async function isCurrent(): Promise<boolean> {
  const { id, serial } = await world.db.domain.findFirstOrThrow({ where: { name: zone } })
  const rows = await world.db.dnsRecord.findMany({ where: { domainId: id } })
  const wanted = rows.map(({ type, ttl, name, value }) => `${type} ${ttl} ${name} ${value}`).sort()
  const { records: own } = source()
  const text = typeof own === 'string' ? own : [...own.texts()].join('\n')
  return source().serial === serial && text.split('\n').filter(Boolean).sort().join('\n') === wanted.join('\n')
}

test('a change brings its names alone, and every other one stays as it was', async () => {
  let before = records()
  expect(before).toBeInstanceOf(RecordsByName)
  const made = await world.record(zone, 'A', 'new.below', '192.0.2.1')
  await until(async () => (await addressOf('new.below')) === '192.0.2.1')
  // What did not change is shared, and so was not read again.
  expect(before.shares(records())).toBe(true)
  expect(before.differing(records())).toHaveLength(1)
  before = records()
  const path = `/dns/${zone}/records/${made.body.id}`
  await world.call('PATCH', path, { body: { value: '192.0.2.2' } })
  await until(async () => (await addressOf('new.below')) === '192.0.2.2')
  expect(before.differing(records())).toHaveLength(1)
  before = records()
  await world.call('PATCH', path, { body: { name: 'moved' } })
  await until(async () => (await addressOf('moved')) === '192.0.2.2')
  expect(before.differing(records())).toHaveLength(2)
  expect(before.shares(records())).toBe(true)
  expect((await askUdp(world.ports[0]!, `below.${zone}`, 'A')).rcode).toBe('NXDOMAIN')
  await world.call('DELETE', path)
  await until(async () => (await askUdp(world.ports[0]!, `moved.${zone}`, 'A')).rcode === 'NXDOMAIN')
  await until(isCurrent)
})

test('many changes at once, of the zone and of others, are all there in the end', async () => {
  await world.newDomain('beside.com')
  const before = records()
  const writes = Array.from({ length: 40 }, async (_, n) => {
    const made = await world.record(zone, 'A', `burst-${n}`, `192.0.2.${n}`)
    if (n % 3 === 0) await world.call('DELETE', `/dns/${zone}/records/${made.body.id}`)
    await world.record('beside.com', 'A', `burst-${n}`, `192.0.2.${n}`)
  })
  await Promise.all(writes)
  await until(isCurrent)
  await until(async () => addressesIn((await askUdp(world.ports[0]!, 'burst-39.beside.com', 'A')).answer).length === 1)
  expect(await addressOf('burst-1')).toBe('192.0.2.1')
  expect(await addressOf('burst-3')).toBeUndefined()
  expect(before.shares(records())).toBe(true)
})

test('a transaction that changes names by several statements, before and after it raises the serial', async () => {
  const { id } = await world.db.domain.findFirstOrThrow({ where: { name: zone } })
  const client = new pg.Client({ connectionString: world.databaseUrl })
  await client.connect()
  const insert = (name: string) =>
    client.query(
      `INSERT INTO dns_record (id, domain_id, type, name, value, ttl, created_at, updated_at)
       VALUES ('rec_' || $1, $2, 'A', $1, '192.0.2.50', 300, now(), now())`,
      [name, id],
    )
  try {
    await until(isCurrent)
    const before = records()
    await client.query('BEGIN')
    await insert('first-of-two')
    await client.query('UPDATE domain SET serial = serial + 1 WHERE id = $1', [id])
    await insert('second-of-two')
    await client.query(`UPDATE dns_record SET ttl = 77 WHERE domain_id = $1 AND name = 'host-number-7'`, [id])
    await client.query('COMMIT')
    await until(isCurrent)
    expect(before.differing(records())).toHaveLength(3)
    expect(before.shares(records())).toBe(true)
    // Without a new serial nobody is told; with the next one it is there.
    await client.query(`UPDATE dns_record SET ttl = 78 WHERE domain_id = $1 AND name = 'host-number-8'`, [id])
    await client.query('UPDATE domain SET serial = serial + 1 WHERE id = $1', [id])
    await until(isCurrent)
  } finally {
    await client.end()
  }
})

test('a nameserver that is far behind, or that many names changed for, reads the whole zone', async () => {
  const { id } = await world.db.domain.findFirstOrThrow({ where: { name: zone } })
  const before = records()
  await world.db.$executeRaw`
    UPDATE dns_record SET ttl = 90 WHERE domain_id = ${id} AND name LIKE 'host-number-1%'`
  await world.db.$executeRaw`UPDATE domain SET serial = serial + 1 WHERE id = ${id}`
  await until(isCurrent)
  expect(before.shares(records())).toBe(false)
  const next = records()
  await world.db.$executeRaw`DELETE FROM zone_change WHERE domain_id = ${id}`
  await world.db.$executeRaw`UPDATE domain SET changes_since = serial + 5, serial = serial + 1 WHERE id = ${id}`
  await until(isCurrent)
  expect(next.shares(records())).toBe(false)
})

test('what changed while the database was away, by name or as a whole, is there when it is back', async () => {
  const { id } = await world.db.domain.findFirstOrThrow({ where: { name: zone } })
  const database = new URL(world.databaseUrl).pathname.slice(1)
  const admin = new pg.Client({ connectionString: postgresUrl() })
  const inside = new pg.Client({ connectionString: world.databaseUrl })
  await admin.connect()
  await inside.connect()
  try {
    for (const names of ['host-number-5', 'host-number-2%']) {
      await until(isCurrent)
      const [{ pid }] = (await inside.query('SELECT pg_backend_pid() AS pid')).rows
      await admin.query(`ALTER DATABASE ${database} ALLOW_CONNECTIONS false`)
      await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> $2', [
        database,
        pid,
      ])
      await until(() => !world.deps.notifications.connected)
      await inside.query('UPDATE dns_record SET ttl = ttl + 1 WHERE domain_id = $1 AND name LIKE $2', [id, names])
      await inside.query('UPDATE domain SET serial = serial + 1 WHERE id = $1', [id])
      expect(await addressOf('host-number-5')).toBe('10.0.0.5')
      await admin.query(`ALTER DATABASE ${database} ALLOW_CONNECTIONS true`)
      await until(() => isCurrent().catch(() => false))
    }
    await until(() => world.nameserver.snapshot!.ageSeconds() === 0)
  } finally {
    await inside.end()
    await admin.end()
  }
})

test('what is noted is bounded, and ends when the zone is small', async () => {
  const { id } = await world.db.domain.findFirstOrThrow({ where: { name: zone } })
  for (let n = 0; n < 30; n++) {
    await world.db.$executeRaw`UPDATE domain SET serial = serial + 100 WHERE id = ${id}`
    await world.db
      .$executeRaw`UPDATE dns_record SET ttl = ${100 + n} WHERE domain_id = ${id} AND name = 'host-number-9'`
  }
  const serials = (await world.db.zoneChange.findMany({ where: { domainId: id } })).map(({ serial }) => serial)
  const { changesSince, serial } = await world.db.domain.findFirstOrThrow({ where: { id } })
  expect(Math.min(...serials)).toBeGreaterThanOrEqual(serial - 2_100)
  expect(Math.min(...serials)).toBeGreaterThanOrEqual(changesSince!)
  await importZone('www A 192.0.2.3\n')
  await until(async () => (await addressOf('www')) === '192.0.2.3')
  await until(isCurrent)
  expect(typeof source().records).toBe('string')
  expect(await world.db.zoneChange.count({ where: { domainId: id } })).toBe(0)
})
