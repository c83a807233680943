import { afterAll, beforeAll, expect, test } from 'vitest'
import { closeDatabase, type Database, openDatabase } from '../../../src/platform/database/database.ts'
import { readSignatures } from '../../../src/services/dns/dnssec/zone-signatures.ts'
import { createDatabase } from '../../helpers/database.ts'

let database: Awaited<ReturnType<typeof createDatabase>>
let db: Database
beforeAll(async () => {
  database = await createDatabase()
  // One connection: its plans are kept.
  db = openDatabase(database.url, 1)
})
afterAll(async () => {
  await closeDatabase(db)
  await database.drop()
})

const fingerprintOf = (n: number) => String(n).padStart(20, '0')

test('a signature is found by the index, also with a plan that was made when there were none', async () => {
  await db.$executeRaw`SET session_replication_role = replica`
  await db.$executeRaw`ANALYZE zone_signature`
  const wanted = [
    { keyId: 'zky_1', fingerprint: fingerprintOf(7), serial: 3 },
    { keyId: 'zky_1', fingerprint: fingerprintOf(20_001), serial: 3 },
  ]
  for (let time = 0; time < 10; time++) expect(await readSignatures(db, wanted)).toEqual([null, null])
  // The seventh set has been renewed twice, the second time for a later version.
  await db.$executeRaw`INSERT INTO zone_signature (key_id, fingerprint, since, name, type, octets)
    SELECT 'zky_1', lpad(n::text, 20, '0')::bytea, since, '', 1, ('since ' || since)::bytea
    FROM generate_series(1, 20000) n, unnest(CASE n WHEN 7 THEN '{0,3,4}' ELSE '{0}' END::int[]) since`
  const scans = async () => {
    await db.$queryRaw`SELECT pg_stat_force_next_flush()::text`
    const [found] = await db.$queryRaw<{ scans: bigint }[]>`
      SELECT seq_scan AS scans FROM pg_stat_user_tables WHERE relname = 'zone_signature'`
    return found!.scans
  }
  const before = await scans()
  expect(await readSignatures(db, wanted)).toEqual(['since 3', null])
  expect(await scans()).toBe(before)
})
