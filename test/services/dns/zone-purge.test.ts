// A deleted zone is gone at once; what is left of a large one is deleted in batches.
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPurgeHandler } from '../../../src/engines/storage/index.ts'
import { Prisma } from '../../../src/generated/client.ts'
import { startWorker } from '../../../src/jobs/worker.ts'
import { createZoneKey } from '../../../src/services/dns/dnssec/zone-keys.ts'
import { purgeZoneRows } from '../../../src/services/dns/sql/zone-statements.ts'
import { readServedZones } from '../../../src/services/dns/zones/served-zones.ts'
import { purgeZone } from '../../../src/services/dns/zones/zone-purge.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { waitsForLock } from '../../helpers/database.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  await api.newProject('site')
  // Every deletion notes how many rows it took, and in which transaction.
  await api.db.$executeRaw`CREATE TABLE deletion_seen (transaction xid8, what text, count bigint)`
  await api.db.$executeRaw`
    CREATE FUNCTION note_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO deletion_seen SELECT pg_current_xact_id(), TG_TABLE_NAME, count(*) FROM gone;
      RETURN NULL;
    END $$`
  for (const table of ['dns_record', 'zone_signature']) {
    await api.db.$executeRaw`
      CREATE TRIGGER note_deletion AFTER DELETE ON ${Prisma.raw(table)} REFERENCING OLD TABLE AS gone
      FOR EACH STATEMENT EXECUTE FUNCTION note_deletion()`
  }
})
afterAll(async () => {
  await api.db.$executeRaw`DROP FUNCTION note_deletion CASCADE`
  await api.db.$executeRaw`DROP TABLE deletion_seen`
  await api.stop()
})

/** The most rows of a table that one transaction deleted. */
async function maxAtOnce(table: string): Promise<number> {
  const [found] = await api.db.$queryRaw<{ most: bigint }[]>`
    SELECT COALESCE(max(sum), 0)::bigint AS most FROM (
      SELECT sum(count) FROM deletion_seen WHERE what = ${table} GROUP BY transaction) s`
  return Number(found!.most)
}

let made = 0
async function largeZone(records: number): Promise<{ name: string; id: string }> {
  const name = `large${++made}.example.com`
  expect((await api.call('POST', '/domains', { body: { project: 'site', name } })).status).toBe(201)
  const { id } = await api.db.domain.findFirstOrThrow({ where: { name } })
  await api.db.$executeRaw`
    INSERT INTO dns_record (id, domain_id, type, name, value, ttl, created_at, updated_at)
    SELECT ${`rec_${name}`} || n, ${id}, 'A', 'h' || n, '192.0.2.1', 300, now(), now()
    FROM generate_series(1, ${records}::int) n`
  return { name, id }
}
const left = (domainId: string) => api.db.dnsRecord.count({ where: { domainId } })
const jobs = (key: string) => api.db.job.count({ where: { kind: 'purge', key } })

test('a large zone is gone at once, its name is free, and its records are deleted a thousand at a time', async () => {
  const { name, id } = await largeZone(3_500)
  const { id: record } = await api.db.dnsRecord.findFirstOrThrow({ where: { domainId: id } })
  expect((await api.call('DELETE', `/domains/${name}`)).status).toBe(204)
  expect(await left(id)).toBe(2_500)
  expect((await readServedZones(api.db, new Map(), [name])).rows).toEqual([])
  // Nobody finds what is left: not in the zone that is gone, and not in one of the same name.
  for (const path of [
    `/domains/${name}`,
    `/dns/${name}/records`,
    `/dns/${name}/zone`,
    `/dns/${name}/records/${record}`,
  ]) {
    expect((await api.call('GET', path)).status, path).toBe(404)
  }
  expect((await api.call('POST', '/domains', { body: { project: 'site', name } })).status).toBe(201)
  expect((await api.call('GET', `/dns/${name}/records`)).body.records).toEqual([])
  for (const method of ['GET', 'DELETE']) {
    expect((await api.call(method, `/dns/${name}/records/${record}`, { headers: { 'if-match': '*' } })).status).toBe(
      404,
    )
  }
  expect(
    (await api.call('POST', `/dns/${name}/records`, { body: { type: 'A', name: 'h1', value: '192.0.2.9' } })).status,
  ).toBe(201)
  expect(await jobs(id)).toBe(1)

  // The process that runs the job dies after a batch; another one finishes it.
  expect((await purgeZoneRows(api.db, { ownerId: id, limit: 1_000 }))[0]!.count).toBe(1_000)
  const worker = startWorker(api.db, api.deps.notifications, pino({ level: 'silent' }), {
    purge: createPurgeHandler(api.db),
  })
  await until(async () => (await jobs(id)) === 0)
  await worker.stop()
  expect(await left(id)).toBe(0)
  expect(await maxAtOnce('dns_record')).toBe(1_000)
  // The zone that has the name now keeps what it has.
  expect((await api.call('GET', `/dns/${name}/records`)).body.records).toHaveLength(1)
})

test('a small zone takes its records along', async () => {
  const { name, id } = await largeZone(20)
  await api.call('DELETE', `/domains/${name}`)
  expect(await left(id)).toBe(0)
  expect(await jobs(id)).toBe(0)
})

test('the signatures of a key are deleted in batches too, with the zone or without', async () => {
  const { name, id } = await largeZone(1)
  const use = { published: true, signing: true, announced: true }
  const keys: string[] = []
  for (let n = 0; n < 2; n++) {
    const { id: keyId } = await api.db.zoneKey.create({ data: createZoneKey(api.deps.vault, id, use) })
    keys.push(keyId)
    const signature = { keyId, since: 0, name: Buffer.from('x'), type: 1, octets: randomBytes(8) }
    const data = Array.from({ length: 1_500 }, () => ({ ...signature, fingerprint: randomBytes(20) }))
    await api.db.zoneSignature.createMany({ data })
  }
  const signatures = (keyId: string) => api.db.zoneSignature.count({ where: { keyId } })
  await api.db.zoneKey.deleteMany({ where: { id: keys[0]! } })
  await api.call('DELETE', `/domains/${name}`)
  for (const keyId of keys) {
    expect(await signatures(keyId)).toBe(500)
    expect(await jobs(keyId)).toBe(1)
    expect(await purgeZone(api.db, keyId)).toBe(500)
    expect(await signatures(keyId)).toBe(0)
  }
  expect(await maxAtOnce('zone_signature')).toBe(1_000)
})

describe('without foreign keys', () => {
  test('nothing of a zone that exists is deleted', async () => {
    const { id } = await largeZone(3)
    expect(await purgeZone(api.db, id)).toBe(0)
    expect(await left(id)).toBe(3)
  })

  test('a record belongs to a domain, and a signature to a key', async () => {
    const now = new Date()
    const record = {
      id: 'rec_orphan',
      type: 'A',
      name: 'x',
      value: '192.0.2.1',
      ttl: 300,
      createdAt: now,
      updatedAt: now,
    }
    await expect(api.db.dnsRecord.createMany({ data: [{ ...record, domainId: 'dom_gone' }] })).rejects.toThrow(
      'dns_record_domain',
    )
    const octets = Buffer.from('x')
    const signature = { keyId: 'zky_gone', since: 0, name: octets, type: 1, octets, fingerprint: octets }
    await expect(api.db.zoneSignature.createMany({ data: [signature] })).rejects.toThrow('zone_signature_key')
  })

  test('a record that is written while its domain is deleted is refused', async () => {
    const { name, id } = await largeZone(1)
    let write: Promise<unknown> = Promise.resolve()
    await api.db.$transaction(async (db) => {
      await db.domain.delete({ where: { id } })
      const data = { id: `rec_late_${name}`, domainId: id, type: 'A', name: 'late', value: '192.0.2.1', ttl: 300 }
      write = api.db.dnsRecord.createMany({ data: [{ ...data, createdAt: new Date(), updatedAt: new Date() }] })
      write.catch(() => {})
      await until(() => waitsForLock(api.db))
    })
    await expect(write).rejects.toThrow('dns_record_domain')
    expect(await left(id)).toBe(0)
  })
})
