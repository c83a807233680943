// Installations of earlier versions keep their data when they are migrated.
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { migrate } from '../prisma/migrate.ts'
import { closeDatabase, openDatabase } from '../src/platform/database/database.ts'
import { newId } from '../src/platform/ids.ts'
import { readUsage } from '../src/services/accounts/usage.ts'
import { adoptNameservers } from '../src/services/domains/nameservers.ts'
import { eventsAfter, positionOf } from '../src/services/events/events.ts'
import type { Actor } from '../src/services/identity/actor.ts'
import { postgresUrl } from './helpers/database.ts'
import { until } from './helpers/until.ts'

async function query<T extends pg.QueryResultRow>(url: string, sql: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<T>(sql)
  await client.end()
  return rows
}

test('ten servers that start together apply each migration once', async () => {
  const admin = new URL(postgresUrl())
  await query(admin.href, 'CREATE DATABASE together')
  admin.pathname = '/together'
  const applied = await Promise.all(Array.from({ length: 10 }, () => migrate(admin.href)))
  expect(applied.filter((names) => names.length > 0)).toHaveLength(1)
})

/** A database as left by the migrations before this one. */
async function createDatabaseBefore(migration: string, name: string): Promise<string> {
  const url = new URL(postgresUrl())
  await query(url.href, `CREATE DATABASE ${name}`)
  url.pathname = `/${name}`
  await migrate(url.href, migration)
  return url.href
}

describe('an installation from before claims had nameservers of their own', () => {
  test('keeps every domain as it is, with the first two names of the pool, and remembers who claimed what', async () => {
    const url = await createDatabaseBefore('20261116010000_claims', 'before_claims')
    await query(
      url,
      `INSERT INTO account (id, name, created_at) VALUES ('acc_1', 'one', now()), ('acc_2', 'two', now());
      INSERT INTO project (id, account_id, name, framework, repo, region, label, production_branch, spa_fallback,
        clean_urls, auto_deploy, created_at, updated_at)
        SELECT 'prj_' || n, 'acc_' || n, 'site', 'static', 'a/b', 'local-1', 'l' || n, 'main', false, true, true, now(),
          now() FROM generate_series(1, 2) n;
      INSERT INTO domain (id, account_id, project_id, name, verified, verified_at, method, txt_value, next_check_at,
        checking_since, ssl, serial, created_at, updated_at) VALUES
        ('dom_1', 'acc_1', 'prj_1', 'proved.com', true, now(), 'nameservers', 'x', now(), now(), 'ACTIVE', 7, now(), now()),
        ('dom_2', 'acc_1', 'prj_1', '*.proved.com', true, now(), 'nameservers', 'x', now(), now(), 'ACTIVE', 1, now(), now()),
        ('dom_3', 'acc_2', 'prj_2', 'proved.com', false, NULL, NULL, 'x', NULL, now(), 'PENDING', 1, now(), now()),
        ('dom_4', 'acc_2', 'prj_2', 'text.com', true, now(), 'txt', 'x', now(), now(), 'ACTIVE', 3, now(), now()),
        ('dom_5', 'acc_2', 'prj_2', 'waits.com', false, NULL, NULL, 'x', now(), now() - interval '9 days', 'PENDING', 1,
          now() - interval '90 days', now()),
        ('dom_6', 'acc_1', 'prj_1', 'a.shop.proved.com', true, now(), 'nameservers', 'x', now(), now(), 'ACTIVE', 1, now(),
          now());
      INSERT INTO domain_hold VALUES ('held.com', 'acc_1', now() + interval '2 days');
      INSERT INTO event (id, account_id, type, actor, subject, data, created_at) VALUES
        ('evt_1', 'acc_1', 'domain.created', 'system', 'gone.com', '{}', now() - interval '1 year'),
        ('evt_2', 'acc_1', 'project.created', 'system', 'prj_1', '{}', now())`,
    )
    const shown = `SELECT id, account_id, name, verified, verified_at, method, txt_value, next_check_at, ssl, serial FROM domain
      ORDER BY id`
    const before = await query(url, shown)
    expect(await migrate(url)).toContain('20261116010000_claims')
    const db = openDatabase(url, 2)
    const pool = ['ns1.berth.net', 'ns2.berth.net', 'ns3.berth.net']
    await adoptNameservers(db, pool)
    await adoptNameservers(db, pool)
    expect(await query(url, shown)).toEqual(before)
    const domains = await db.domain.findMany()
    expect(domains.map(({ nameservers }) => nameservers)).toEqual(Array(6).fill(pool.slice(0, 2)))
    const waits = domains.find(({ name }) => name === 'waits.com')!
    expect(waits.unprovedSince).toEqual(waits.checkingSince)
    const claims = await db.domainClaim.findMany({ orderBy: [{ name: 'asc' }, { accountId: 'asc' }] })
    const pair = 'ns1.berth.net ns2.berth.net'
    expect(claims.map(({ name, accountId, pair }) => ({ name, accountId, pair }))).toEqual([
      { name: 'a.shop.proved.com', accountId: 'acc_1', pair },
      { name: 'gone.com', accountId: 'acc_1', pair },
      { name: 'held.com', accountId: 'acc_1', pair },
      { name: 'proved.com', accountId: 'acc_1', pair },
      { name: 'proved.com', accountId: 'acc_2', pair },
      { name: 'text.com', accountId: 'acc_2', pair },
      { name: 'waits.com', accountId: 'acc_2', pair },
    ])
    const above = await db.domainClaimAbove.findMany({ orderBy: { above: 'asc' } })
    const below = { name: 'a.shop.proved.com', accountId: 'acc_1', pair }
    expect(above).toEqual([
      { above: 'proved.com', ...below },
      { above: 'shop.proved.com', ...below },
    ])
    await closeDatabase(db)
  })
})

describe('an installation from before there were quotas', () => {
  test('has what is there counted, and nothing that is gone', async () => {
    const url = await createDatabaseBefore('20261116000000_quotas', 'before_quotas')
    const made = 'now(), now()'
    await query(
      url,
      `INSERT INTO account (id, name, created_at) VALUES ('acc_1', 'one', now()), ('acc_2', 'two', now());
      INSERT INTO project (id, account_id, name, framework, repo, region, label, production_branch, spa_fallback,
        clean_urls, auto_deploy, created_at, updated_at)
        SELECT 'prj_' || n, 'acc_1', 'site-' || n, CASE n WHEN 3 THEN 'node' ELSE 'static' END, 'a/b', 'local-1', 'l' || n,
          'main', false, true, true, ${made}
        FROM generate_series(1, 3) n;
      INSERT INTO deployment (id, account_id, project_id, state, ref, commit, production, label, region, source, created_at)
        SELECT 'dpl_' || n, 'acc_1', 'prj_1', CASE WHEN n < 3 THEN 'BUILDING' ELSE 'READY' END, 'main', '', true, 'd' || n,
          'local-1', 'api', now() FROM generate_series(1, 5) n;
      INSERT INTO domain (id, account_id, project_id, name, txt_value, created_at, updated_at) VALUES
        ('dom_1', 'acc_1', 'prj_1', 'one.com', 'x', ${made}), ('dom_2', 'acc_1', 'prj_1', 'two.com', 'x', ${made});
      INSERT INTO dns_record (id, domain_id, type, name, value, ttl, created_at, updated_at)
        SELECT 'rec_' || n, 'dom_' || n % 2 + 1, 'A', 'h' || n, '192.0.2.1', 300, ${made} FROM generate_series(1, 7) n;
      INSERT INTO token (id, account_id, name, scopes, project_ids, prefix, hash, revoked_at, created_at) VALUES
        ('tok_1', 'acc_1', 'live', '{*}', '{}', 'x', '\\x01', NULL, now()),
        ('tok_2', 'acc_1', 'revoked', '{*}', '{}', 'x', '\\x02', now(), now());
      INSERT INTO ticket (id, account_id, subject, status, priority, created_at, updated_at) VALUES
        ('tkt_1', 'acc_1', 'x', 'OPEN', 'normal', ${made}), ('tkt_2', 'acc_1', 'x', 'CLOSED', 'normal', ${made})`,
    )
    await migrate(url)
    const db = openDatabase(url, 2)
    expect(await readUsage(db, 'acc_1')).toEqual({
      projects: 3,
      serverInstances: 1,
      deployments: 5,
      domains: 2,
      claimsPerMonth: 0,
      records: 7,
      recordBytes: 77,
      dnsKeys: 0,
      openTickets: 1,
      messagesPerMonth: 0,
      tokens: 1,
      members: 0,
      webhooks: 0,
      buildsAtOnce: 0,
      buildsQueued: 2,
      buildMinutesPerMonth: 0,
      storedBytes: 0,
    })
    // From then on, triggers maintain the counters.
    await db.domain.deleteMany({ where: { id: 'dom_2' } })
    await db.project.deleteMany({ where: { id: 'prj_3' } })
    expect(await readUsage(db, 'acc_1')).toMatchObject({
      projects: 2,
      serverInstances: 0,
      domains: 1,
      records: 3,
      recordBytes: 33,
    })
    expect(await readUsage(db, 'acc_2')).toMatchObject({ projects: 0, tokens: 0, records: 0 })
    await closeDatabase(db)
  })
})

describe('indexes of large tables', () => {
  const migration = '20261117070200_list_indexes'
  const project = `INSERT INTO account (id, name, created_at) VALUES ('acc_1', 'one', now());
    INSERT INTO project (id, account_id, name, framework, repo, region, label, production_branch, spa_fallback, clean_urls,
      auto_deploy, created_at, updated_at)
      VALUES ('prj_1', 'acc_1', 'site', 'static', 'a/b', 'local-1', 'l', 'main', false, true, true, now(), now())`
  const deployment = (
    id: string,
  ) => `INSERT INTO deployment (id, account_id, project_id, state, ref, commit, production, label,
    region, source, created_at) VALUES ('${id}', 'acc_1', 'prj_1', 'READY', 'main', '', true, '${id}', 'local-1', 'api', now())`

  test('are built while the tables are written to', async () => {
    const url = await createDatabaseBefore(migration, 'before_indexes')
    await query(url, project)
    const writer = new pg.Client({ connectionString: url })
    await writer.connect()
    await writer.query(`BEGIN; ${deployment('dpl_1')}`)
    const migrated = migrate(url)
    await until(async () => {
      const building = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
        AND query LIKE '%INDEX CONCURRENTLY%'`
      return (await query(url, building)).length > 0
    })
    // It waits for the transaction, and nothing waits for it.
    await query(url, `SET lock_timeout = '5s'; ${deployment('dpl_2')}`)
    await writer.query('COMMIT')
    await writer.end()
    expect(await migrated).toContain(migration)
  })

  test('that were left incomplete by an interruption are built anew', async () => {
    const url = await createDatabaseBefore(migration, 'interrupted_indexes')
    await query(url, 'CREATE INDEX token_live ON token (id)')
    await query(url, `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'token_live'::regclass`)
    await migrate(url)
    const [made] = await query<{ line: string; valid: boolean }>(
      url,
      `SELECT pg_get_indexdef(indexrelid) AS line, indisvalid AS valid FROM pg_index
        WHERE indexrelid = 'token_live'::regclass`,
    )
    expect(made).toMatchObject({
      valid: true,
      line: expect.stringContaining('(account_id, id) WHERE (revoked_at IS NULL)'),
    })
  })

  test('come with counters of what projects have, filled in and kept from then on', async () => {
    const url = await createDatabaseBefore('20261117070300_project_usage', 'before_project_usage')
    await query(
      url,
      `${project}; ${deployment('dpl_1')}; ${deployment('dpl_2')}; UPDATE deployment SET stored_bytes = 5`,
    )
    await migrate(url)
    const usage = `SELECT sum(deployments)::int AS deployments, sum(stored_bytes)::int AS bytes FROM project_usage`
    expect(await query(url, usage)).toEqual([{ deployments: 2, bytes: 10 }])
    await query(url, `${deployment('dpl_3')}; UPDATE deployment SET stored_bytes = 7 WHERE id = 'dpl_3'`)
    expect(await query(url, usage)).toEqual([{ deployments: 3, bytes: 17 }])
    await query(url, `DELETE FROM deployment WHERE id <> 'dpl_3'`)
    expect(await query(url, usage)).toEqual([{ deployments: 1, bytes: 7 }])
    await query(url, 'DELETE FROM project')
    expect(await query(url, 'SELECT * FROM project_usage')).toEqual([])
  })
})

describe('an installation from before the log had months', () => {
  test('keeps every event with its place: readers resume, and the version before still writes', async () => {
    const url = await createDatabaseBefore('20261117010000_event_numbers', 'before_months')
    const insert = (id: string) => `INSERT INTO event (id, account_id, type, actor, subject, data, created_at)
      VALUES ('${id}', 'acc_1', 'ticket.created', 'system', 'tkt_1', '{}', now())`
    await query(
      url,
      `INSERT INTO account (id, name, created_at) VALUES ('acc_1', 'one', now());
      INSERT INTO webhook (id, account_id, url, events, active, secret, created_at, updated_at)
        VALUES ('whk_1', 'acc_1', 'http://127.0.0.1:1/', '{*}', true, '\\x01', now(), now())`,
    )
    // IDs don't follow the log order, and one comes from a clock that is far ahead.
    const ids = [
      'evt_01jcqk8c4p0000000000000b',
      'evt_zz',
      'evt_01jcqk8c4p0000000000000a',
      'evt_01jcqk8c4p0000000000000c',
    ]
    for (const id of ids) await query(url, insert(id))
    const log = 'SELECT id, xid::text, seq FROM event ORDER BY xid, seq'
    const before = await query(url, log)
    expect(await migrate(url)).toContain('20261117010100_event_months')
    expect(await query(url, log)).toEqual(before)
    const later = newId('evt')
    await query(url, insert(later))
    const db = openDatabase(url, 2)
    const reader = { accountId: 'acc_1', projectIds: null } as unknown as Actor
    const idsAfter = async (id: string) => {
      const { events } = await eventsAfter(db, ['acc_1'], await positionOf(db, reader, id), 100)
      return events.map(({ view }) => view.id)
    }
    // A log position is final once all concurrent transactions have ended, including those of other databases.
    await until(async () => (await idsAfter(ids[0]!)).length === ids.length)
    for (const [index, id] of ids.entries()) expect(await idsAfter(id)).toEqual([...ids.slice(index + 1), later])
    // Each has one delivery: moving the log sent nothing again.
    expect(await db.delivery.count()).toBe(ids.length + 1)
    expect(await query(url, 'SELECT added FROM event_numbering')).toEqual([{ added: '0' }])
    await closeDatabase(db)
  })

  test('that was copied from another cluster goes on behind its events', async () => {
    const url = await createDatabaseBefore('20261117010000_event_numbers', 'copied_log')
    const insert = (columns: string, values: string) => `INSERT INTO event (id, account_id, type, actor, subject, data,
      created_at${columns}) VALUES ('${newId('evt')}', 'acc_1', 'ticket.created', 'system', 'tkt_1', '{}', now()${values})`
    await query(url, insert(', xid', `, '999999999999'`))
    await migrate(url)
    await query(url, insert('', ''))
    const log = 'SELECT xid > 999999999999::text::xid8 AS behind FROM event ORDER BY seq'
    expect(await query(url, log)).toEqual([{ behind: false }, { behind: true }])
  })
})

describe('an installation from before tokens had lineages', () => {
  test('finds them in its events: what rotated itself is one, and what another token rotated is not', async () => {
    const url = await createDatabaseBefore('20261127000000_token_lineages', 'before_lineages')
    const rotated = (seq: number, old: string, made: string, actor: string) =>
      `('evt_${seq}', 'acc_1', 'token.rotated', '${actor}', '${old}', '{"id":"${made}"}', now())`
    await query(
      url,
      `INSERT INTO account (id, name, created_at) VALUES ('acc_1', 'one', now());
      INSERT INTO token (id, account_id, name, scopes, project_ids, prefix, hash, created_at, parent_id)
        SELECT 'tok_' || n, 'acc_1', 't', '{*}', '{}', 'x', decode(lpad(n::text, 2, '0'), 'hex'), now(),
          CASE n WHEN 4 THEN 'tok_3' WHEN 6 THEN 'tok_1' END
        FROM generate_series(1, 8) n;
      INSERT INTO event (id, account_id, type, actor, subject, data, created_at) VALUES
        ('evt_0', 'acc_1', 'token.created', 'tok_2', 'tok_4', '{"id":"tok_4"}', now()),
        ${rotated(1, 'tok_2', 'tok_3', 'tok_2')}, ${rotated(2, 'tok_3', 'tok_5', 'tok_4')},
        ${rotated(3, 'tok_5', 'tok_6', 'tok_1')}, ${rotated(4, 'tok_gone', 'tok_7', 'tok_gone')},
        ${rotated(5, 'tok_7', 'tok_8', 'usr_1')}`,
    )
    await migrate(url)
    const found = await query(
      url,
      'SELECT id, creator_id, lineage_id, replaces_id, replaced_by_id FROM token ORDER BY id',
    )
    expect(found.map((row) => Object.values(row))).toEqual([
      ['tok_1', null, null, null, null],
      ['tok_2', null, null, null, 'tok_3'],
      ['tok_3', 'tok_2', 'tok_2', 'tok_2', 'tok_5'],
      ['tok_4', 'tok_2', null, null, null],
      ['tok_5', 'tok_4', 'tok_2', 'tok_3', 'tok_6'],
      ['tok_6', 'tok_1', null, 'tok_5', null],
      ['tok_7', 'tok_gone', 'tok_gone', 'tok_gone', 'tok_8'],
      ['tok_8', null, null, 'tok_7', null],
    ])
  })
})
