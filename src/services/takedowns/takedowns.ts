// Takedowns, made and ended by operators: one host or one project that is answered by a neutral page.
import type { Static } from '@sinclair/typebox'
import type { Account, Takedown } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { byId, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { Fault, invalidField } from '../../platform/errors.ts'
import type { Sound } from '../../platform/fields.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { newId } from '../../platform/ids.ts'
import type { CreateTakedown, OperatorTakedown, TakedownQuery } from '../../schemas/takedowns.ts'
import { type Actor, actorName } from '../identity/index.ts'
import { readName } from '../names/index.ts'
import { endTakedowns, tellOwner, viewTakedown } from './ending.ts'
import { namesCovering } from './names.ts'

export type OperatorTakedownView = Static<typeof OperatorTakedown>

type Row = Takedown & { account: Pick<Account, 'id' | 'name'> }

const withAccount = { account: { select: { id: true, name: true } } } as const

function view({ account, ...row }: Row): OperatorTakedownView {
  return { ...viewTakedown(row), account: { id: account.id, name: account.name } }
}

/** What is taken down, and whose it is. */
type Target = Pick<Takedown, 'accountId' | 'projectId' | 'host' | 'hosts'>

/** The project as a whole. Its names are kept: a new project or another one's domain of that name is taken down too. */
async function targetOfProject(db: Db, urls: Urls, id: string): Promise<Target> {
  const found = await db.project.findUnique({
    where: { id },
    select: {
      accountId: true,
      label: true,
      branches: { select: { label: true } },
      domains: { where: { verified: true }, select: { name: true } },
    },
  })
  if (!found) throw invalidField('#/project', 'not_found', `there is no project ${id}`)
  const { accountId, label, branches, domains } = found
  const labels = [label, ...branches.map((branch) => branch.label)]
  const hosts = [...labels.map(urls.host), ...domains.map(({ name }) => name)]
  return { accountId, projectId: id, host: null, hosts }
}

/** The host, in the form in which the edge looks it up; refused unless somebody serves it. */
async function targetOfHost(db: Db, urls: Urls, given: string): Promise<Target> {
  const read = readName(given)
  if (!('name' in read)) throw invalidField('#/host', read.code, read.detail)
  const host = read.name
  const owner = (await ownerOfLabel(db, urls, host)) ?? (await ownerOfDomain(db, host))
  if (owner) return { ...owner, host, hosts: [host] }
  const detail = 'is not served here; use the host of a project, READY deployment, branch or domain'
  throw invalidField('#/host', 'not_served', detail)
}

type Owner = Pick<Takedown, 'accountId' | 'projectId'>

async function ownerOfLabel(db: Db, urls: Urls, host: string): Promise<Owner | null> {
  const label = host.slice(0, host.indexOf('.'))
  if (urls.host(label) !== host) return null
  const project = await db.project.findUnique({ where: { label }, select: { id: true, accountId: true } })
  if (project) return { accountId: project.accountId, projectId: project.id }
  const select = { accountId: true, projectId: true }
  const deployment = await db.deployment.findFirst({ where: { label, state: 'READY' }, select })
  if (deployment) return deployment
  const branch = await db.branch.findUnique({ where: { label }, select: { projectId: true, ref: true } })
  return branch && db.deployment.findFirst({ where: { ...branch, branchLabel: label, state: 'READY' }, select })
}

/** A name may be served by its own domain, by a wildcard or, if it is a `www`, by the name below. */
async function ownerOfDomain(db: Db, host: string): Promise<Owner | null> {
  const names = namesCovering(host)
  const found = await db.domain.findMany({
    where: { name: { in: names }, verified: true },
    select: { name: true, accountId: true, projectId: true },
  })
  const serving = names.map((name) => found.find((domain) => domain.name === name)).find((domain) => domain)
  return serving ? { accountId: serving.accountId, projectId: serving.projectId } : null
}

/** Refuses what would be refused of a takedown, and makes none. */
export async function checkTakedown(db: Db, urls: Urls, { host, project }: Sound<Static<typeof CreateTakedown>>) {
  if (host !== undefined || project !== undefined) await findTarget(db, urls, { host, project })
}

type Named = Pick<Static<typeof CreateTakedown>, 'host' | 'project'>

function findTarget(db: Db, urls: Urls, { host, project }: Named): Promise<Target> {
  if (host !== undefined && project === undefined) return targetOfHost(db, urls, host)
  if (project !== undefined && host === undefined) return targetOfProject(db, urls, project)
  const detail = 'send exactly one of `host` and `project`'
  throw host === undefined
    ? invalidField('#/host', 'required', detail)
    : invalidField('#/project', 'not_allowed', detail)
}

/** Made once: what is taken down already, also at this very moment by somebody else, stays as it is. */
export async function createTakedown(
  db: Db,
  urls: Urls,
  actor: Actor,
  input: Static<typeof CreateTakedown>,
): Promise<OperatorTakedownView> {
  return inTransaction(db, async (db) => {
    const target = await findTarget(db, urls, input)
    const row = { ...target, id: newId('tkd'), reason: input.reason, createdAt: new Date(), endedAt: null }
    const { host, projectId } = target
    const standing = { endedAt: null, host, ...(host === null && { projectId }) }
    for (;;) {
      // A conflict raises no error, which would end the transaction, but waits for the other one to commit.
      const made = await db.takedown.createMany({ data: [row], skipDuplicates: true })
      if (made.count > 0) await tellOwner(db, 'takedown.created', row, actorName(actor))
      const found = await db.takedown.findFirst({ where: standing, include: withAccount })
      if (found) return view(found)
      // The other one was ended since: now there is room.
    }
  })
}

export async function listTakedowns(
  db: Db,
  { ended }: Static<typeof TakedownQuery>,
  page: PageRequest,
): Promise<PageOf<OperatorTakedownView>> {
  const { where, ...rest } = byId(page, 'tkd')
  const endedAt = ended === undefined ? undefined : ended ? { not: null } : null
  const found = await db.takedown.findMany({ where: { ...where, endedAt }, include: withAccount, ...rest })
  return pageOf(found, page, view, (row) => [row.id])
}

export async function getTakedown(db: Db, id: string): Promise<OperatorTakedownView> {
  const found = await db.takedown.findUnique({ where: { id }, include: withAccount })
  if (!found) throw new Fault('not_found', `There is no takedown ${id}.`)
  return view(found)
}

/** Ends it; nothing happens, and no event, if it has ended. */
export async function endTakedown(
  db: Db,
  actor: Actor,
  id: string,
  precondition: (view: OperatorTakedownView) => void,
): Promise<void> {
  await inTransaction(db, async (db) => {
    precondition(await getTakedown(db, id))
    await endTakedowns(db, { id }, actorName(actor))
  })
}
