// Domains: attached, read, checked again on demand, deleted. Their states change in states.ts alone.
import type { Static } from '@sinclair/typebox'
import type { Config } from '../../config.ts'
import type { Domain, Project } from '../../generated/client.ts'
import { enqueue } from '../../jobs/queue.ts'
import { jobValues } from '../../jobs/statements.ts'
import { deleteInBatches } from '../../platform/batches.ts'
import { initialOf } from '../../platform/database/columns.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { byId, containing, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault } from '../../platform/errors.ts'
import { type Sound, together } from '../../platform/fields.ts'
import { newId, randomLabel } from '../../platform/ids.ts'
import {
  type Certificate,
  type CreateDomain,
  type DomainQuery,
  Domain as DomainSchema,
  DomainVerification,
} from '../../schemas/domains.ts'
import { append, eventOf, eventValues } from '../events/index.ts'
import { type Actor, inProjectsOf } from '../identity/index.ts'
import { hostOf, isWildcard, nameInPath, nameToAttach, type PlatformNames } from '../names/index.ts'
import { checkProjectField, projectIdsOf } from '../projects/index.ts'
import { findNotice } from '../takedowns/index.ts'
import { findTarget, pairFor } from './availability.ts'
import { hasEnded } from './check-schedule.ts'
import { sharedAdvice, sharedText } from './claim-reasons.ts'
import { isExclusive, nameserversOf } from './nameservers.ts'
import { createDomainRows, createWildcardRows, lockDomain, lockHost } from './statements.ts'

export type DomainView = Static<typeof DomainSchema>
export type CertificateView = Static<typeof Certificate>

export type DomainRow = Domain & { project: Pick<Project, 'name'>; redirect: Pick<Domain, 'name'> | null }

/** What the view of a domain needs besides its row. */
export type ViewOptions = Pick<Config, 'nameservers'>

export const withNames = { project: { select: { name: true } }, redirect: { select: { name: true } } } as const

// How long a deleted name stays reserved, because its delegation at the registrar may still be there.
const holdMs = 7 * 24 * 60 * 60_000

const viewRow = viewOf(DomainSchema)
const viewVerification = viewOf(DomainVerification)

/** Without what the database computes, so that a domain can be shown before it is stored. */
type ShownRow = Omit<DomainRow, 'serial' | 'recordBytes' | 'checkingSince' | 'unprovedSince'>

export function viewDomain({ nameservers: pool }: ViewOptions, row: ShownRow): DomainView {
  return viewRow(row, {
    project: row.project.name,
    nameservers: nameserversOf(pool, row.nameservers),
    verification: viewVerification(row, {
      txt: { name: `_berth.${hostOf(row.name)}`, value: row.txtValue },
      observed: { nameservers: row.observedNameservers, txt: row.observedTxt, asked: row.observedAsked },
    }),
    redirectTo: row.redirect?.name ?? null,
  })
}

/** The domain as it is read by itself, with the takedown that covers it, if one stands. */
export async function showDomain(db: Db, options: ViewOptions, row: DomainRow): Promise<DomainView> {
  return { ...viewDomain(options, row), takedown: await findNotice(db, row.projectId, row.name) }
}

/** Whether nothing more is to be waited for: the domain is verified, and its certificate is issued or has failed. */
export function isSettled(row: DomainRow): boolean {
  return row.verified && row.ssl !== 'PENDING' && row.ssl !== 'ISSUING'
}

export async function findDomain(db: Db, actor: Actor, path: string): Promise<DomainRow> {
  const name = nameInPath(path)
  const row = await db.domain.findFirst({ where: { ...inProjectsOf(actor), name }, include: withNames })
  if (!row) throw new Fault('not_found', `There is no domain ${name}.`)
  return row
}

/** The domain, locked against other changes until the transaction ends. */
export async function findDomainToChange(db: Db, actor: Actor, path: string): Promise<DomainRow> {
  await lockDomain(db, { accountId: actor.accountId, name: nameInPath(path) })
  return findDomain(db, actor, path)
}

export async function listDomains(
  db: Db,
  options: ViewOptions,
  actor: Actor,
  { filter, page }: { filter: Static<typeof DomainQuery>; page: PageRequest },
): Promise<PageOf<DomainView>> {
  const { project, verified, ssl, search } = filter
  const ofProject = project === undefined ? {} : { projectId: { in: await projectIdsOf(db, actor, project) } }
  const named = search === undefined ? {} : { name: containing(search) }
  const { where, ...rest } = byId(page, 'dom')
  const found = await db.domain.findMany({
    where: { ...where, ...inProjectsOf(actor), ...ofProject, verified, ssl: ssl && { in: ssl }, ...named },
    include: withNames,
    ...rest,
  })
  return pageOf(
    found,
    page,
    (row) => viewDomain(options, row),
    (row) => [row.id],
  )
}

/** Refuses what would be refused of a new domain, and attaches none. */
export async function checkDomain(
  db: Db,
  options: PlatformNames,
  actor: Actor,
  { project, name }: Sound<Static<typeof CreateDomain>>,
): Promise<void> {
  await together(
    () => checkProjectField(db, actor, project),
    () => (name === undefined ? null : nameToAttach(options, name)),
  )
}

/** The name to attach; if it is refused, so is a project that is not there, at once. */
async function readNewName(db: Db, options: PlatformNames, actor: Actor, input: Static<typeof CreateDomain>) {
  try {
    return nameToAttach(options, input.name)
  } catch (error) {
    await checkDomain(db, options, actor, input)
    throw error
  }
}

export async function createDomain(
  db: Db,
  options: PlatformNames,
  actor: Actor,
  input: Pick<Static<typeof CreateDomain>, 'project' | 'name'>,
): Promise<DomainView> {
  const name = await readNewName(db, options, actor, input)
  const made = await claimName(db, options, actor, { ...input, name })
  if (made) return made
  // Something changed since the first read. With the lock nothing does, so that reading again tells what.
  return inTransaction(db, async (db) => {
    await lockHost(db, { host: hostOf(name) })
    const made = await claimName(db, options, actor, { ...input, name })
    if (!made) throw new Fault('domain_exists', `The account already has the domain ${name}.`)
    return made
  })
}

const initialDomain = initialOf('Domain')

/** Null if a row that it depends on changed after it was read. */
async function claimName(
  db: Db,
  options: PlatformNames,
  actor: Actor,
  { project: projectKey, name }: Pick<Static<typeof CreateDomain>, 'project' | 'name'>,
): Promise<DomainView | null> {
  const found = await findTarget(db, actor, projectKey, name)
  const project = { id: found.projectId, name: found.projectName }
  const nameservers = await pairFor(db, options.nameservers, actor, found)
  const host = hostOf(name)
  const now = new Date()
  const id = newId('dom')
  const txtValue = `berth-verify=${randomLabel(26)}`
  // Who sets the nameservers in vain should know before; a name below one's own is proved by that.
  const isProvable = isWildcard(name) || found.ownedAbove || isExclusive(nameservers, found)
  const advice = sharedAdvice('Where its DNS is now', { name: `_berth.${host}`, value: txtValue })
  const reason = isProvable ? null : `${sharedText(host, options.nameservers, found)} ${advice}`
  const row = {
    ...initialDomain,
    id,
    accountId: actor.accountId,
    projectId: project.id,
    name,
    txtValue,
    nameservers,
    reason,
    nextCheckAt: now,
    createdAt: now,
    updatedAt: now,
  }
  const view = viewDomain(options, { ...row, project, redirect: null })
  const values = {
    ...row,
    ...eventValues(eventOf(actor, 'domain.created', { subject: name, projectId: project.id, data: view })),
    ...jobValues({ kind: 'verify', key: id, payload: { domainId: id } }),
  }
  const created = isWildcard(name)
    ? await createWildcardRows(db, { ...values, host })
    : await createDomainRows(db, { ...values, rivals: found.rivals })
  return created.length > 0 ? { ...view, takedown: await findNotice(db, project.id, name) } : null
}

/** Has the domain checked now, and often again for a while. When a claim ends does not depend on it. */
export async function requestVerification(
  db: Db,
  options: ViewOptions,
  actor: Actor,
  path: string,
): Promise<DomainView> {
  return inTransaction(db, async (db) => {
    const { id, name, verified, unprovedSince } = await findDomainToChange(db, actor, path)
    const now = new Date()
    if (!verified && hasEnded(now, unprovedSince)) {
      throw new Fault('claim_ended', `${name} was not verified within 30 days. Delete it and add it again.`)
    }
    const row = await db.domain.update({
      where: { id },
      data: { nextCheckAt: now, ...(!verified && { checkingSince: now }) },
      include: withNames,
    })
    await enqueue(db, { kind: 'verify', key: id, payload: { domainId: id } })
    return showDomain(db, options, row)
  })
}

/** Throws if other domains redirect to this one; names those that the actor may see. */
export async function requireNoRedirects(
  db: Db,
  actor: Actor,
  { id, name }: Pick<DomainRow, 'id' | 'name'>,
): Promise<void> {
  if ((await db.domain.count({ where: { redirectId: id } })) === 0) return
  const where = { ...inProjectsOf(actor), redirectId: id }
  const seen = await db.domain.findMany({ where, select: { name: true }, take: 3 })
  const sources = seen.length > 0 ? seen.map((one) => one.name).join(', ') : 'domains of other projects'
  throw new Fault('domain_has_redirects', `Other domains redirect to ${name}: ${sources}.`)
}

/** Deletes the domain with its zone. A verified name stays reserved for the account for `holdMs`. */
export async function deleteDomain(
  db: Db,
  options: ViewOptions,
  actor: Actor,
  { path, precondition }: { path: string; precondition: (view: DomainView) => void },
): Promise<void> {
  await inTransaction(db, async (db) => {
    const row = await findDomainToChange(db, actor, path)
    const { id, accountId, projectId, name } = row
    const view = viewDomain(options, row)
    precondition(await showDomain(db, options, row))
    const wildcards = await db.domain.count({ where: { accountId, name: `*.${name}` } })
    if (wildcards > 0) throw new Fault('domain_has_wildcard', `Delete *.${name} first: it lives in this zone.`)
    await requireNoRedirects(db, actor, row)
    // Only verified names are reserved: otherwise anyone could block names of others.
    if (row.verified) {
      const hold = { accountId, until: new Date(Date.now() + holdMs) }
      await db.domainHold.upsert({ where: { name }, create: { name, ...hold }, update: hold })
    }
    await db.domain.delete({ where: { id } })
    await append(db, [eventOf(actor, 'domain.deleted', { subject: name, projectId, data: view })])
  })
}

/** Deletes reservations that are over, and tells how many. */
export function deleteOldHolds(db: Db, signal?: AbortSignal): Promise<number> {
  const where = { until: { lt: new Date() } }
  return deleteInBatches(signal, (limit) => db.domainHold.deleteMany({ where, limit }))
}
