// Attaches domains, moves them to other projects, and sets their redirects.
import type { Static } from '@sinclair/typebox'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { Fault, invalidField } from '../../platform/errors.ts'
import { type Sound, together } from '../../platform/fields.ts'
import type { ChangeDomain, CreateDomain } from '../../schemas/domains.ts'
import { append, eventOf } from '../events/index.ts'
import { type Actor, inProjectsOf } from '../identity/index.ts'
import { isWildcard, nameInPath, type PlatformNames, readName } from '../names/index.ts'
import { checkProjectField, findProjectToChange } from '../projects/index.ts'
import {
  checkDomain,
  createDomain,
  type DomainRow,
  type DomainView,
  findDomain,
  requireNoRedirects,
  showDomain,
  type ViewOptions,
  viewDomain,
  withNames,
} from './domains.ts'
import { lockDomain } from './statements.ts'

type Input = Static<typeof ChangeDomain>

/** Attaches a domain, with a redirect if requested. */
export async function attachDomain(
  db: Db,
  options: PlatformNames,
  actor: Actor,
  { redirectTo, redirectStatus, ...input }: Static<typeof CreateDomain>,
): Promise<DomainView> {
  if (redirectTo === undefined && redirectStatus === undefined) return createDomain(db, options, actor, input)
  return inTransaction(db, async (db) => {
    const { name } = await createDomain(db, options, actor, input)
    const redirection = { redirectTo: redirectTo ?? null, ...(redirectStatus && { redirectStatus }) }
    return changeDomain(db, options, actor, { path: name, input: redirection, precondition: () => {} })
  }).catch(async (error) => {
    // Only the first step has reported its errors; report those of both.
    if (error instanceof Fault && error.members.errors)
      await checkNewDomain(db, options, actor, { ...input, redirectTo })
    throw error
  })
}

/** Throws the errors of a new domain and its redirect, without attaching it. */
export async function checkNewDomain(
  db: Db,
  options: PlatformNames,
  actor: Actor,
  { redirectTo, ...input }: Sound<Static<typeof CreateDomain>>,
): Promise<void> {
  const read = readName(input.name ?? '')
  const domain = { id: '', name: 'name' in read ? read.name : '', redirectId: null, redirectStatus: null }
  await together(
    () => checkDomain(db, options, actor, input),
    () => checkRedirection(db, actor, domain, redirectTo),
  )
}

export type DomainChange = { path: string; input: Input; precondition(view: DomainView): void }

/** Changes the project or redirect. Zone, certificate and verification don't depend on them. */
export async function changeDomain(
  db: Db,
  options: ViewOptions,
  actor: Actor,
  { path, input, precondition }: DomainChange,
): Promise<DomainView> {
  const target = readTarget(input.redirectTo)
  return inTransaction(db, async (db) => {
    // Locked in order of their names to avoid deadlocks.
    const names = [nameInPath(path), ...(target === null ? [] : [target])].sort()
    for (const name of names) await lockDomain(db, { accountId: actor.accountId, name })
    const before = await findDomain(db, actor, path)
    const shown = await showDomain(db, options, before)
    precondition(shown)
    const data = {
      ...(await projectChange(db, actor, input)),
      ...(await redirection(db, actor, before, { input, target })),
    }
    const changes = Object.entries(data).some(([key, value]) => before[key as keyof typeof data] !== value)
    if (!changes) return shown
    const after = await db.domain.update({
      where: { id: before.id },
      data: { ...data, updatedAt: new Date() },
      include: withNames,
    })
    await appendEvents(db, options, actor, { before, after })
    return showDomain(db, options, after)
  })
}

/** Throws the errors of a change without applying it. */
export async function checkDomainChange(db: Db, actor: Actor, path: string, input: Sound<Input>): Promise<void> {
  const domain = await findDomain(db, actor, path)
  const { project, redirectTo } = input
  await together(
    () => checkProjectField(db, actor, project),
    () => checkRedirection(db, actor, domain, redirectTo),
  )
}

async function checkRedirection(
  db: Db,
  actor: Actor,
  domain: RedirectSource,
  redirectTo: string | null | undefined,
): Promise<void> {
  const target = readTarget(redirectTo)
  if (target !== null) await redirection(db, actor, domain, { input: { redirectTo }, target })
}

/** Canonicalizes the name to redirect to; null if there is none. */
function readTarget(redirectTo: string | null | undefined): string | null {
  if (redirectTo === null || redirectTo === undefined) return null
  const read = readName(redirectTo)
  if (!('name' in read)) throw invalidField('#/redirectTo', read.code, read.detail)
  if (isWildcard(read.name)) throw invalidField('#/redirectTo', 'bad_format', 'must be a single host, not a wildcard')
  return read.name
}

async function projectChange(db: Db, actor: Actor, { project }: Input) {
  // Locked, so it can't be deleted concurrently.
  return project === undefined ? {} : { projectId: (await findProjectToChange(db, actor, project)).id }
}

type RedirectSource = Pick<DomainRow, 'id' | 'name' | 'redirectId' | 'redirectStatus'>

/** Redirects never lead to a domain that redirects itself, which excludes loops and chains. */
async function redirection(
  db: Db,
  actor: Actor,
  domain: RedirectSource,
  { input: { redirectTo, redirectStatus }, target: name }: { input: Input; target: string | null },
) {
  if (redirectTo === null && redirectStatus === undefined) return { redirectId: null, redirectStatus: null }
  if (name === null) {
    if (redirectStatus === undefined) return {}
    if (redirectTo === undefined && domain.redirectId !== null) return { redirectStatus }
    throw invalidField('#/redirectStatus', 'no_redirect', 'needs `redirectTo`')
  }
  if (name === domain.name) throw invalidField('#/redirectTo', 'redirect_loop', 'must not be the domain itself')
  const target = await db.domain.findFirst({ where: { ...inProjectsOf(actor), name }, include: withNames })
  if (!target) throw invalidField('#/redirectTo', 'not_found', `there is no domain ${name} in the account`)
  if (target.redirect) {
    throw invalidField('#/redirectTo', 'redirect_loop', `already redirects to ${target.redirect.name}`)
  }
  await requireNoRedirects(db, actor, domain)
  return { redirectId: target.id, redirectStatus: redirectStatus ?? domain.redirectStatus ?? 308 }
}

/** Appends the events. Readers of the previous project get one too, with the domain as it was. */
async function appendEvents(
  db: Db,
  options: ViewOptions,
  actor: Actor,
  { before, after }: { before: DomainRow; after: DomainRow },
): Promise<void> {
  const event = (type: 'domain.moved' | 'domain.updated', row: DomainRow) =>
    eventOf(actor, type, { subject: row.name, projectId: row.projectId, data: viewDomain(options, row) })
  const left = before.projectId === after.projectId ? [] : [event('domain.moved', before)]
  await append(db, [...left, event('domain.updated', after)])
}
