// A database with one large account and many small ones. Filtered rows are rare and old: the worst case of a list that
// scans until a page is full.
import type pg from 'pg'
import { hashToken, newToken } from '../../src/platform/secrets/secrets.ts'

/** The rows of the large account; the small ones together have a quarter as many. */
export type Sizes = {
  accounts: number
  projects: number
  deployments: number
  domains: number
  records: number
  tickets: number
  tokens: number
  deliveries: number
  takedowns: number
  events: number
}

export type Seeded = {
  /** A token of the large account for everything, and as an operator. */
  token: string
  /** A token of the large account for the large project and a small one. */
  narrowed: string
  /** The path parameters of each list, separated by spaces. */
  paths: Record<string, string>
}

export const zone = 'large.example.com'
export const rareRef = 'rare'
export const rareWord = 'lockfile'
/** Some deployments have the same commit, in many projects. */
export const commonCommit = 'c0ffee0'.padEnd(40, '1')
const id = (prefix: string, number: string) => `'${prefix}_' || lpad((${number})::text, 24, '0')`
const big = `acc_${'0'.repeat(24)}`
/** Every fifth row belongs to a small account. */
const accountOf = (accounts: number) => `CASE WHEN i % 5 > 0 THEN '${big}' ELSE ${id('acc', `1 + i % ${accounts}`)} END`

function fill(sizes: Sizes): string[] {
  const { accounts, projects, domains } = sizes
  const rows = (count: number) => `generate_series(1, ${Math.ceil(count * 1.25)}) i`
  const account = accountOf(accounts)
  // Half of the large account's deployments belong to its first project. Small accounts have one project each.
  const project = `CASE WHEN i % 5 = 0 THEN ${id('prj', `${projects} + 1 + i % ${accounts}`)}
    WHEN i % 2 = 0 THEN ${id('prj', '1')} ELSE ${id('prj', `1 + i % ${projects}`)} END`
  return [
    `INSERT INTO account (id, name, created_at) SELECT ${id('acc', 'i')}, 'seeded-' || i, now()
     FROM generate_series(0, ${accounts}) i`,
    `INSERT INTO project (id, account_id, name, framework, repo, region, label, production_branch, spa_fallback, clean_urls,
       auto_deploy, current_deployment_id, created_at, updated_at)
     SELECT ${id('prj', 'i')}, CASE WHEN i <= ${projects} THEN '${big}' ELSE ${id('acc', `i - ${projects}`)} END,
       'site-' || i, CASE WHEN i = 1 THEN 'astro' ELSE 'static' END, 'owner/site-' || i % 7, 'local-1', 'site-' || i, 'main',
       false, true, true, NULL, now(), now() FROM generate_series(1, ${projects + accounts}) i`,
    `INSERT INTO deployment (id, account_id, project_id, state, ref, commit, production, label, region, source, stored_bytes,
       created_at, ready_at, finished_at)
     SELECT ${id('dpl', 'i')}, ${account}, ${project},
       CASE WHEN i < 8 THEN 'BUILDING' WHEN i < 40 THEN 'CANCELED' WHEN i % 25 = 0 THEN 'ERROR' ELSE 'READY' END,
       CASE WHEN i < 30 THEN '${rareRef}' WHEN i % 3 = 0 THEN 'feature-' || i % 1000 ELSE 'main' END, CASE WHEN i % 997 = 0 THEN '${commonCommit}' ELSE md5(i::text) || '00000000' END,
       i < 60 OR i % 3 = 1, 'site-x-' || i, 'local-1', 'api', 1000, now(), now(), now() FROM ${rows(sizes.deployments)}`,
    `INSERT INTO production (project_id, deployment_id, reason, since, served_at, until)
     SELECT ${id('prj', `1 + i % ${projects}`)}, ${id('dpl', 'i')}, 'deployment', now(), now(), now() FROM ${rows(sizes.tokens)}`,
    `INSERT INTO project_usage SELECT project_id, 0, count(*), sum(stored_bytes) FROM deployment GROUP BY project_id`,
    `INSERT INTO account_usage SELECT account_id, 'deployments', 0, count(*) FROM deployment GROUP BY account_id`,
    `INSERT INTO log_line (deployment_id, seq, at, stream, step, text)
     SELECT ${id('dpl', '62')}, i, now(), 'stdout', 'build', 'line ' || i FROM ${rows(sizes.tokens)}`,
    `INSERT INTO domain (id, account_id, project_id, name, txt_value, verified, ssl, created_at, updated_at)
     SELECT ${id('dom', 'i')}, CASE WHEN i <= ${domains} THEN '${big}' ELSE ${id('acc', `i - ${domains}`)} END,
       CASE WHEN i <= ${domains} THEN ${id('prj', `1 + i % ${projects}`)} ELSE ${id('prj', `${projects} + i - ${domains}`)} END,
       CASE WHEN i = 1 THEN '${zone}' ELSE 'zone-' || i || '.example.com' END, md5(i::text), i > 3,
       CASE WHEN i <= 3 THEN 'ERROR' ELSE 'ACTIVE' END, now(), now() FROM generate_series(1, ${domains + accounts}) i`,
    `INSERT INTO dns_record (id, domain_id, type, name, value, ttl, created_at, updated_at)
     SELECT ${id('rec', 'i')}, CASE WHEN i <= ${sizes.records} THEN ${id('dom', '1')} ELSE ${id('dom', `2 + i % ${domains}`)} END,
       CASE WHEN i < 4 THEN 'MX' WHEN i % 10 = 0 THEN 'TXT' ELSE 'A' END, CASE WHEN i < 4 THEN 'zz' ELSE 'host-' || i END,
       'v' || i, 300, now(), now() FROM ${rows(sizes.records)}`,
    `INSERT INTO ticket (id, account_id, subject, status, priority, created_at, updated_at)
     SELECT ${id('tkt', 'i')}, ${account}, CASE WHEN i < 12 THEN 'Question about a ${rareWord} ' ELSE 'Question ' END || i,
       CASE WHEN i < 12 THEN 'OPEN' WHEN i % 50 = 0 THEN 'RESOLVED' ELSE 'CLOSED' END,
       CASE WHEN i BETWEEN 3 AND 20 THEN 'urgent' WHEN i % 20 = 0 THEN 'high' ELSE 'normal' END, now(), now()
     FROM ${rows(sizes.tickets)}`,
    `INSERT INTO ticket_message (id, ticket_id, author, message, created_at)
     SELECT ${id('msg', 'i')}, ${id('tkt', `CASE WHEN i <= 500 THEN 1 ELSE i END`)}, 'customer', 'How does it work?', now()
     FROM ${rows(sizes.tickets)}`,
    `INSERT INTO token (id, account_id, name, scopes, project_ids, prefix, hash, revoked_at, created_at)
     SELECT ${id('tok', '1000 + i')}, ${account}, 'ci', '{*}', '{}', 'brt_0000', decode(md5(i::text), 'hex'),
       CASE WHEN i > 40 THEN now() END, now() FROM ${rows(sizes.tokens)}`,
    `INSERT INTO webhook (id, account_id, url, events, active, secret, created_at, updated_at)
     SELECT ${id('whk', 'i')}, CASE WHEN i <= 20 THEN '${big}' ELSE ${id('acc', 'i - 20')} END, 'https://example.com', '{*}', true,
       '\\x00', now(), now() FROM generate_series(1, ${20 + accounts}) i`,
    `INSERT INTO deploy_hook (id, project_id, name, hash, created_at)
     SELECT ${id('dhk', 'i')}, ${project}, 'cms', decode(md5(i::text), 'hex'), now() FROM ${rows(sizes.tokens)}`,
    `INSERT INTO pull_request (project_id, number, ref, title, branch, from_fork, commit, state, created_at, updated_at)
     SELECT ${project}, i, 'refs/pull/' || i || '/head', 'Fix ' || i, 'fix', true, md5(i::text) || '00000000', 'OPEN', now(), now()
     FROM ${rows(sizes.tokens)}`,
    `INSERT INTO cron (id, project_id, path, schedule, next_at, created_at)
     SELECT ${id('crn', 'i')}, ${id('prj', `1 + i % ${projects}`)}, '/' || i, '* * * * *', now(), now()
     FROM generate_series(1, 200) i`,
    `INSERT INTO cron_run (id, cron_id, due_at, started_at, outcome)
     SELECT ${id('crr', 'i')}, ${id('crn', '1 + i % 200')}, now() - i * interval '1 minute', now(), 'ok'
     FROM generate_series(1, 10000) i`,
    `INSERT INTO delivery (id, webhook_id, event_id, event_type, state, seq, created_at)
     SELECT ${id('dlv', 'i')}, ${id('whk', 'CASE WHEN i % 5 > 0 THEN 1 ELSE 2 + i % 20 END')}, ${id('evt', 'i')}, 'ticket.created',
       'DELIVERED', i, now() FROM ${rows(sizes.deliveries)}`,
    `INSERT INTO takedown (id, account_id, project_id, host, hosts, reason, created_at, ended_at)
     SELECT ${id('tkd', 'i')}, ${account}, ${id('prj', '1')}, 'host-' || i, ARRAY['host-' || i], 'abuse', now(),
       CASE WHEN i > 5 THEN now() END FROM ${rows(sizes.takedowns)}`,
    // Numbered here, because the default calls a function for each row.
    `INSERT INTO event (id, account_id, project_id, type, actor, subject, data, created_at, xid)
     SELECT ${id('evt', 'i')}, ${account}, ${project}, CASE WHEN i < 30 THEN 'account.resumed' WHEN i % 2 = 0
       THEN 'account.created' ELSE 'account.limits_changed' END, 'system', ${id('dpl', `1 + i % ${Math.min(1_000, sizes.events / 40)}`)},
       json_build_object('id', '${big}', 'name', 'large'), now(), pg_current_xact_id() FROM ${rows(sizes.events)}`,
  ]
}

async function addToken(client: pg.Client, number: number, projectIds: string[]): Promise<string> {
  const token = newToken()
  await client.query(
    `INSERT INTO token (id, account_id, name, scopes, project_ids, prefix, hash, created_at)
     VALUES ($1, $2, 'list', $3, $4, $5, $6, now())`,
    [
      `tok_${String(number).padStart(24, '0')}`,
      big,
      projectIds.length > 0 ? ['*'] : ['*', 'operator'],
      projectIds,
      token.slice(0, 8),
      hashToken(token),
    ],
  )
  return token
}

/** Fills a migrated database without triggers: foreign keys hold by construction, and nothing is notified. */
export async function seed(client: pg.Client, sizes: Sizes): Promise<Seeded> {
  await client.query('SET session_replication_role = replica')
  for (const statement of fill(sizes)) await client.query(statement)
  await client.query('SET session_replication_role = DEFAULT')
  const numbered = (prefix: string, number: number) => `${prefix}_${String(number).padStart(24, '0')}`
  const token = await addToken(client, 1, [])
  const narrowed = await addToken(client, 2, [numbered('prj', 1), numbered('prj', 2)])
  await vacuum(client)
  return {
    token,
    narrowed,
    paths: {
      '/deployments/{id}/logs': numbered('dpl', 62),
      '/deployments/{id}/runtime-logs': numbered('dpl', 62),
      '/tickets/{id}/messages': numbered('tkt', 1),
      '/operator/tickets/{id}/messages': numbered('tkt', 1),
      '/webhooks/{id}/deliveries': numbered('whk', 1),
      '/dns/{domain}/records': zone,
      '/dns/{domain}/rrsets': zone,
      '/dns/{domain}/keys': zone,
      '/projects/{project}/deploy-hooks': numbered('prj', 1),
      '/projects/{project}/pull-requests': numbered('prj', 1),
      '/projects/{project}/production': numbered('prj', 1),
      '/projects/{project}/crons/{id}/runs': `${numbered('prj', 2)} ${numbered('crn', 1)}`,
    },
  }
}

// VACUUM keeps rows that a running statement may still need, so it is repeated.
const maxVacuums = 50

/** The state that autovacuum leaves at rest: plans depend on the visibility map. */
async function vacuum(client: pg.Client): Promise<void> {
  for (let count = 0; count < maxVacuums; count++) {
    await client.query('VACUUM ANALYZE')
    const { rows } = await client.query(
      `SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relallvisible < relpages`,
    )
    if (rows.length === 0) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
