// The zones of the benchmark, with ten records each: in the database by set-based SQL, and in files by our zone writer.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { migrate } from '../../prisma/migrate.ts'
import { loadConfig } from '../../src/config.ts'
import type { RecordType } from '../../src/dns/record-types.ts'
import { writeZoneFile } from '../../src/dns/zone-files/zone-file-writer.ts'
import type { EmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { soaOf } from '../../src/services/dns/index.ts'
import { withClient } from '../database.ts'

export const accountId = 'acc_1'
export const zoneName = (number: number) => `zone-${number}.test`
export const largeZone = 'large.test'

// {n} is the number of the zone, {ip} the same as three octets. The apex and www have addresses, so the platform adds none
// and all servers have the same records.
const pattern: { name: string; type: RecordType; value: string }[] = [
  { name: '@', type: 'A', value: '10.{ip}' },
  { name: '@', type: 'AAAA', value: '2001:db8::1' },
  { name: '@', type: 'MX', value: '10 mail.zone-{n}.test' },
  { name: '@', type: 'TXT', value: '"v=spf1 mx -all"' },
  { name: '@', type: 'CAA', value: '0 issue "ca.test"' },
  { name: 'www', type: 'CNAME', value: 'zone-{n}.test' },
  { name: 'mail', type: 'A', value: '10.{ip}' },
  { name: 'api', type: 'A', value: '10.{ip}' },
  { name: 'api', type: 'A', value: '11.{ip}' },
  { name: '*.apps', type: 'A', value: '12.{ip}' },
]
const ttl = 3600

/** A database with `size` zones. */
export async function seed(postgres: EmbeddedPostgres, name: string, size: number): Promise<string> {
  await withClient(postgres.url(), (client) => client.query(`CREATE DATABASE ${name}`))
  const url = postgres.url(name)
  await migrate(url)
  await withClient(url, async (client) => {
    await client.query(`INSERT INTO account (id, name, created_at) VALUES ('${accountId}', 'bench', now())`)
    // Foreign keys hold by construction, and nothing listens yet.
    await client.query('SET session_replication_role = replica')
    await client.query(
      `INSERT INTO project (id, account_id, name, framework, repo, region, label, production_branch, spa_fallback,
         clean_urls, auto_deploy, created_at, updated_at)
       VALUES ('prj_1', '${accountId}', 'site', 'static', 'bench/site', 'local-1', 'site', 'main', false, true, true,
         now(), now())`,
    )
    await client.query(
      `INSERT INTO domain (id, account_id, project_id, name, verified, txt_value, created_at, updated_at)
       SELECT 'dom_' || i, '${accountId}', 'prj_1', 'zone-' || i || '.test', true, 'x', now(), now()
       FROM generate_series(1, ${size}) i`,
    )
    await client.query(
      `INSERT INTO dns_record (id, domain_id, type, name, value, ttl, created_at, updated_at)
       SELECT 'rec_' || i || '_' || place, 'dom_' || i, type, name,
         replace(replace(value, '{n}', i::text), '{ip}', concat_ws('.', i >> 16, i >> 8 & 255, i & 255)),
         ${ttl}, now(), now()
       FROM generate_series(1, ${size}) i,
         ROWS FROM (jsonb_to_recordset($1::jsonb) AS (name text, type text, value text))
           WITH ORDINALITY AS r(name, type, value, place)`,
      [JSON.stringify(pattern)],
    )
    await client.query('VACUUM (ANALYZE)')
  })
  return url
}

/** Another zone with this many records. It bypasses the counting triggers, so the counters are written here. */
export async function seedLarge(url: string, size: number): Promise<void> {
  await withClient(url, async (client) => {
    await client.query('SET session_replication_role = replica')
    await client.query(
      `INSERT INTO domain (id, account_id, project_id, name, verified, txt_value, records, record_bytes, created_at,
         updated_at)
       VALUES ('dom_large', '${accountId}', 'prj_1', '${largeZone}', true, 'x', ${size}, ${size} * 20, now(), now())`,
    )
    await client.query(
      `INSERT INTO dns_record (id, domain_id, type, name, value, ttl, created_at, updated_at)
       SELECT 'rec_large_' || i, 'dom_large', 'A', 'host-' || i, concat_ws('.', 10, i >> 16, i >> 8 & 255, i & 255),
         ${ttl}, now(), now() FROM generate_series(1, ${size}) i`,
    )
    // The state after an import: later changes are logged.
    await client.query(`UPDATE domain SET changes_since = serial WHERE id = 'dom_large'`)
    await client.query('VACUUM (ANALYZE)')
  })
}

/** The same zones as files, as an export would write them; returns the directory. */
export async function writeZoneFiles(directory: string, size: number): Promise<string> {
  const zones = join(directory, 'zones')
  await mkdir(zones)
  const config = loadConfig({})
  for (let number = 1; number <= size; number++) {
    const zone = zoneName(number)
    const ip = [number >> 16, (number >> 8) & 255, number & 255].join('.')
    const records = pattern.map(({ name, type, value }) => {
      return { name, type, value: value.replace('{n}', String(number)).replace('{ip}', ip), ttl }
    })
    const soa = soaOf(config, zone)
    const text = writeZoneFile({ zone, serial: 1, nameservers: config.nameservers, soa, records })
    await writeFile(join(zones, `${zone}.zone`), text)
  }
  return zones
}
