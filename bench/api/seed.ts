// Databases of a given size, filled by set-based SQL and copied, so that both sides start with the same pages.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type pg from 'pg'
import { migrate } from '../../prisma/migrate.ts'
import type { EmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { newId } from '../../src/platform/ids.ts'
import { hashToken, newToken } from '../../src/platform/secrets/secrets.ts'
import { withClient } from '../database.ts'
import { bigZone, type Endpoint } from './endpoints.ts'

const run = promisify(execFile)

const repo = 'bench/site'
const idSql = (prefix: string) => `'${prefix}_' || lpad(i::text, 24, '0')`

/** All rows belong to one account, the worst case of every index that starts with it. */
const fill = (account: string, size: number) => [
  `INSERT INTO project (id, account_id, name, framework, repo, region, label, production_branch, default_branch, spa_fallback,
     clean_urls, auto_deploy, current_deployment_id, created_at, updated_at)
   SELECT ${idSql('prj')}, '${account}', 'site-' || i, 'vite', '${repo}', 'local-1', 'site-' || i, 'main', 'main', false, true, true,
     ${idSql('dpl')}, now(), now() FROM generate_series(1, ${size}) i`,
  `INSERT INTO deployment (id, account_id, project_id, state, ref, commit, production, label, region, source,
     created_at, ready_at, finished_at)
   SELECT ${idSql('dpl')}, '${account}', ${idSql('prj')}, 'READY', 'main', md5(i::text) || '00000000', true, 'site-' || i || '-x',
     'local-1', 'api', now(), now(), now() FROM generate_series(1, ${size}) i`,
  `INSERT INTO domain (id, account_id, project_id, name, txt_value, nameservers, next_check_at, created_at, updated_at)
   SELECT ${idSql('dom')}, '${account}', 'prj_' || lpad(greatest(i, 1)::text, 24, '0'),
     CASE i WHEN 0 THEN '${bigZone}' ELSE 'zone-' || i || '.test' END, 'berth-verify=' || md5(i::text),
     '{ns1.berth.test,ns2.berth.test}', now(), now(), now()
   FROM generate_series(0, ${size}) i`,
  `INSERT INTO domain_claim (name, account_id, pair) SELECT name, account_id, array_to_string(nameservers, ' ') FROM domain`,
  `INSERT INTO dns_record (id, domain_id, type, name, value, ttl, created_at, updated_at)
   SELECT ${idSql('rec')}, (SELECT id FROM domain WHERE account_id = '${account}' AND name = '${bigZone}'), 'A', 'host-' || i,
     '192.0.2.' || i % 256, 300, now(), now() FROM generate_series(1, ${size}) i`,
  `INSERT INTO ticket (id, account_id, subject, status, priority, created_at, updated_at)
   SELECT ${idSql('tkt')}, '${account}', 'Question ' || i, 'RESOLVED', 'normal', now(), now() FROM generate_series(1, ${size}) i`,
  `INSERT INTO ticket_message (id, ticket_id, author, message, created_at)
   SELECT ${idSql('msg')}, ${idSql('tkt')}, 'customer', 'How does it work?', now() FROM generate_series(1, ${size}) i`,
  `INSERT INTO event (id, account_id, project_id, type, actor, subject, data, created_at)
   SELECT ${idSql('evt')}, '${account}', ${idSql('prj')}, 'deployment.created', 'system', ${idSql('dpl')},
     jsonb_build_object('id', ${idSql('dpl')}, 'project', 'site-' || i), now() FROM generate_series(1, ${size}) i`,
]
// Vacuumed between slices, because autovacuum during a slice would distort its result.
const written = [
  'account_usage',
  'deployment',
  'dns_record',
  'domain',
  'domain_claim',
  'domain_claim_above',
  'event',
  'job',
  'ticket',
  'ticket_message',
]

/** Creates the databases `names`, identical in every page, with `size` rows per table; returns the account's token. */
export async function seed(postgres: EmbeddedPostgres, size: number, names: string[]): Promise<string> {
  const [template, ...copies] = names
  const token = newToken()
  const accountId = newId('acc')
  await withClient(postgres.url(), (client) => client.query(`CREATE DATABASE ${template}`))
  await migrate(postgres.url(template))
  await withClient(postgres.url(template), async (client) => {
    await client.query(`INSERT INTO account (id, name, created_at) VALUES ($1, 'bench', now())`, [accountId])
    await client.query(
      `INSERT INTO token (id, account_id, name, scopes, project_ids, prefix, hash, created_at)
       VALUES ($1, $2, 'bench', '{*}', '{}', $3, $4, now())`,
      [newId('tok'), accountId, token.slice(0, 8), hashToken(token)],
    )
    // The event log has a table per month.
    const { rows: tables } = await client.query<{ name: string }>(
      `SELECT c.oid::regclass AS name FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
       WHERE c.relkind = 'r' AND COALESCE(i.inhparent, c.oid) = ANY ($1::regclass[])`,
      [written],
    )
    for (const { name } of tables) await client.query(`ALTER TABLE ${name} SET (autovacuum_enabled = off)`)
    // Foreign keys hold by construction; checking 100,000 of them and notifying listeners would take longer.
    await client.query('SET session_replication_role = replica')
    for (const statement of fill(accountId, size)) await client.query(statement)
    await client.query('VACUUM (FREEZE, ANALYZE)')
  })
  for (const name of copies) {
    await withClient(postgres.url(), (client) => client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`))
  }
  // Written to disk now, so that later measurements don't wait for it.
  await withClient(postgres.url(), (client) => client.query('CHECKPOINT'))
  return token
}

/** Deletes what a slice added, so that the next one starts with the nominal size. */
export async function sweep(client: pg.Client, endpoint: Endpoint): Promise<void> {
  if (endpoint.adds.length === 0) return
  for (const [table, prefix] of endpoint.adds) {
    await client.query(`DELETE FROM ${table} ${prefix && `WHERE id > '${prefix}_01'`}`)
  }
  const touched = new Set([...endpoint.adds.map(([table]) => table), 'domain', 'ticket_message'])
  await client.query(`VACUUM ${[...touched].join(', ')}`)
}

/** A bare repository whose branch is a file, like after a push. */
export async function makeRepository(root: string): Promise<void> {
  const bare = join(root, `${repo}.git`)
  await mkdir(bare, { recursive: true })
  const tree = await mkdtemp(join(root, 'tree-'))
  const git = (...args: string[]) => run('git', ['-C', tree, ...args])
  await run('git', ['init', '-q', '--bare', '-b', 'main', bare])
  await git('init', '-q', '-b', 'main')
  await git('-c', 'user.name=b', '-c', 'user.email=b@example.com', 'commit', '-q', '--allow-empty', '-m', 'first')
  await git('push', '-q', bare, 'main')
  await rm(tree, { recursive: true })
}
