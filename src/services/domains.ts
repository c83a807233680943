// Domains: attached, read, checked again on demand, deleted. Their states change in domain-states.ts alone.
import type { Static } from '@sinclair/typebox'
import type { Actor } from '../actor.ts'
import type { Config } from '../config.ts'
import { type Db, inTransaction, rows, sql } from '../db.ts'
import { Fault, invalidField } from '../errors.ts'
import { newId, randomLabel } from '../ids.ts'
import { jobSql } from '../jobs/queue.ts'
import { type PageOf, type PageRequest, pageOf } from '../page.ts'
import type { Certificate, CreateDomain, DomainQuery, Domain as DomainSchema } from '../schemas/domains.ts'
import { hostOf, isWildcard, nameInPath, nameToAttach, parentsOf } from './domain-names.ts'
import { append, eventOf, eventSql } from './events.ts'
import { hasKey, ownedBy } from './projects.ts'

export type DomainView = Static<typeof DomainSchema>
export type CertificateView = Static<typeof Certificate>

export type DomainRow = {
  id: string
  accountId: string
  projectId: string
  project: string
  name: string
  verified: boolean
  verifiedAt: Date | null
  method: DomainView['verification']['method']
  txtValue: string
  checkedAt: Date | null
  nextCheckAt: Date | null
  observedNameservers: string[]
  observedTxt: string[]
  reason: string | null
  misses: number
  ssl: DomainView['ssl']
  certificate: CertificateView | null
  serial: number
  createdAt: Date
}

export const domainColumns = sql`d.id, d.account_id AS "accountId", d.project_id AS "projectId", p.name AS project,
  d.name, d.verified, d.verified_at AS "verifiedAt", d.method, d.txt_value AS "txtValue", d.checked_at AS "checkedAt",
  d.next_check_at AS "nextCheckAt", d.observed_nameservers AS "observedNameservers", d.observed_txt AS "observedTxt",
  d.reason, d.misses, d.ssl, d.certificate, d.serial, d.created_at AS "createdAt"`

// How long a removed name stays reserved: a delegation that was forgotten at the registrar outlives the domain here.
const holdDays = 7

export function viewDomain(config: Config, row: DomainRow): DomainView {
  return {
    name: row.name,
    project: row.project,
    verified: row.verified,
    ssl: row.ssl,
    nameservers: config.nameservers,
    createdAt: row.createdAt.toISOString(),
    verification: {
      method: row.method,
      txt: { name: `_berth.${hostOf(row.name)}`, value: row.txtValue },
      checkedAt: row.checkedAt?.toISOString() ?? null,
      nextCheckAt: row.nextCheckAt?.toISOString() ?? null,
      observed: { nameservers: row.observedNameservers, txt: row.observedTxt },
      reason: row.reason,
    },
    certificate: row.certificate,
    verifiedAt: row.verifiedAt?.toISOString() ?? null,
  }
}

/** Whether waiting for more is pointless: ownership is proved, and the certificate has come or failed. */
export function isSettled(row: DomainRow): boolean {
  return row.verified && row.ssl !== 'PENDING' && row.ssl !== 'ISSUING'
}

export async function findDomain(db: Db, actor: Actor, path: string, lock = false): Promise<DomainRow> {
  const name = nameInPath(path)
  const [row] = await rows<DomainRow>(
    db,
    sql`SELECT ${domainColumns} FROM domain d JOIN project p ON p.id = d.project_id
        WHERE d.name = ${name} AND ${ownedBy(actor, sql`d.account_id`, sql`d.project_id`)}
        ${lock ? sql`FOR UPDATE OF d` : sql``}`,
  )
  if (!row) throw new Fault('not_found', `There is no domain ${name}.`)
  return row
}

export async function listDomains(
  db: Db,
  config: Config,
  actor: Actor,
  filter: Static<typeof DomainQuery>,
  page: PageRequest,
): Promise<PageOf<DomainView>> {
  const conditions = [ownedBy(actor, sql`d.account_id`, sql`d.project_id`)]
  if (filter.project) conditions.push(hasKey(filter.project))
  if (filter.verified !== undefined) conditions.push(sql`d.verified = ${filter.verified}::boolean`)
  if (filter.ssl) conditions.push(sql`d.ssl = ${filter.ssl}`)
  const descending = page.order === 'desc'
  if (page.after) conditions.push(descending ? sql`d.id < ${page.after[0]}` : sql`d.id > ${page.after[0]}`)
  const where = conditions.reduce((all, one) => sql`${all} AND ${one}`)
  const found = await rows<DomainRow>(
    db,
    sql`SELECT ${domainColumns} FROM domain d JOIN project p ON p.id = d.project_id WHERE ${where}
        ORDER BY d.id ${descending ? sql`DESC` : sql``} LIMIT ${page.limit + 1}::int`,
  )
  return pageOf(
    found,
    page,
    (row) => viewDomain(config, row),
    (row) => [row.id],
  )
}

type Standing = { projectId: string; project: string; exists: boolean; taken: boolean; zoneHere: boolean }

/** The project, and everything that may stand in the way of a name, in one look. */
async function readStanding(db: Db, actor: Actor, projectKey: string, name: string): Promise<Standing> {
  const { accountId } = actor
  // Whoever has proved a name has it with everything below.
  const names = [name, ...parentsOf(name)]
  const [standing] = await rows<Standing>(
    db,
    sql`SELECT p.id AS "projectId", p.name AS project,
          EXISTS (SELECT 1 FROM domain d WHERE d.account_id = ${accountId} AND d.name = ${name}) AS exists,
          EXISTS (SELECT 1 FROM domain d
            WHERE d.verified AND d.name = ANY(${names}::text[]) AND d.account_id <> ${accountId})
          OR EXISTS (SELECT 1 FROM domain_hold h
            WHERE h.name = ANY(${names}::text[]) AND h.account_id <> ${accountId} AND h.until > now()) AS taken,
          EXISTS (SELECT 1 FROM domain d WHERE d.account_id = ${accountId} AND d.name = ${hostOf(name)}) AS "zoneHere"
        FROM project p WHERE ${ownedBy(actor, sql`p.account_id`, sql`p.id`)} AND ${hasKey(projectKey)}`,
  )
  if (!standing) throw new Fault('not_found', `There is no project ${projectKey}.`)
  if (standing.exists) throw new Fault('domain_exists', `The account already has the domain ${name}.`)
  if (standing.taken) throw new Fault('domain_taken', `Another account owns ${name} or a domain above it.`)
  if (isWildcard(name) && !standing.zoneHere) {
    throw invalidField('#/name', 'zone_not_here', `needs ${hostOf(name)} to be attached first`)
  }
  return standing
}

export async function createDomain(
  db: Db,
  config: Config,
  actor: Actor,
  input: Static<typeof CreateDomain>,
): Promise<DomainView> {
  const name = nameToAttach(config, input.name)
  const { projectId, project } = await readStanding(db, actor, input.project, name)
  const now = new Date()
  const row: DomainRow = {
    id: newId('dom'),
    accountId: actor.accountId,
    projectId,
    project,
    name,
    verified: false,
    verifiedAt: null,
    method: null,
    txtValue: `berth-verify=${randomLabel(26)}`,
    checkedAt: null,
    nextCheckAt: now,
    observedNameservers: [],
    observedTxt: [],
    reason: null,
    misses: 0,
    ssl: 'PENDING',
    certificate: null,
    serial: 1,
    createdAt: now,
  }
  const view = viewDomain(config, row)
  // Project and, for a wildcard, zone are locked against deletion by reading them here. Nothing raises when the same
  // name comes in twice at once, so a transaction around it lives on.
  const zone = isWildcard(name) ? sql`JOIN domain z ON z.account_id = p.account_id AND z.name = ${hostOf(name)}` : sql``
  const made = await rows(
    db,
    sql`WITH source AS (SELECT p.id FROM project p ${zone} WHERE p.id = ${projectId} FOR KEY SHARE),
        made AS (
          INSERT INTO domain (id, account_id, project_id, name, txt_value, next_check_at, created_at, updated_at)
          SELECT ${row.id}, ${row.accountId}, source.id, ${name}, ${row.txtValue}, ${now}::timestamptz,
            ${now}::timestamptz, ${now}::timestamptz
          FROM source ON CONFLICT DO NOTHING RETURNING id),
        logged AS (${eventSql(eventOf(actor, 'domain.created', name, projectId, view), sql`made`)}),
        queued AS (${jobSql('verify', row.id, { domainId: row.id }, sql`made`)})
        SELECT id FROM made`,
  )
  if (made.length > 0) return view
  // Something changed since the look: looking again names it.
  await readStanding(db, actor, input.project, name)
  throw new Fault('domain_exists', `The account already has the domain ${name}.`)
}

/** Asks for a check now, whatever the schedule says; the schedule of a domain without proof begins anew. */
export async function requestVerification(db: Db, config: Config, actor: Actor, path: string): Promise<DomainView> {
  const row = await findDomain(db, actor, path)
  const [asked] = await rows<{ nextCheckAt: Date }>(
    db,
    sql`WITH asked AS (
          UPDATE domain SET next_check_at = now(), checking_since = CASE WHEN verified THEN checking_since ELSE now() END
          WHERE id = ${row.id} RETURNING next_check_at AS "nextCheckAt"),
        queued AS (${jobSql('verify', row.id, { domainId: row.id }, sql`asked`)})
        SELECT "nextCheckAt" FROM asked`,
  )
  if (!asked) throw new Fault('not_found', `There is no domain ${row.name}.`)
  return viewDomain(config, { ...row, ...asked })
}

/** Takes the zone along. A name that was proved stays reserved for the account for a while. */
export async function deleteDomain(
  db: Db,
  config: Config,
  actor: Actor,
  path: string,
  precondition: (view: DomainView) => void,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const row = await findDomain(db, actor, path, true)
    const view = viewDomain(config, row)
    precondition(view)
    const [wildcard] = await rows(
      db,
      sql`SELECT 1 FROM domain WHERE account_id = ${row.accountId} AND name = ${`*.${row.name}`}`,
    )
    if (wildcard) throw new Fault('domain_has_wildcard', `Delete *.${row.name} first: it lives in this zone.`)
    // Unproved names are not held: anyone could keep others from names that were never theirs.
    if (row.verified) {
      await rows(
        db,
        sql`INSERT INTO domain_hold (name, account_id, until)
            VALUES (${row.name}, ${row.accountId}, now() + make_interval(days => ${holdDays}::int))
            ON CONFLICT (name) DO UPDATE SET account_id = excluded.account_id, until = excluded.until RETURNING name`,
      )
    }
    await db.domain.delete({ where: { id: row.id } })
    await append(db, [eventOf(actor, 'domain.deleted', row.name, row.projectId, view)])
  })
}
