// Takedowns by operators: visitors of a host or of a whole project get a neutral page.
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
import { appendTakedownEvent, endTakedowns, viewTakedown } from './ending.ts'
import { namesCovering } from './names.ts'

export type OperatorTakedownView = Static<typeof OperatorTakedown>

type Row = Takedown & { account: Pick<Account, 'id' | 'name'> }

const withAccount = { account: { select: { id: true, name: true } } } as const

function view({ account, ...row }: Row): OperatorTakedownView {
  return { ...viewTakedown(row), account: { id: account.id, name: account.name } }
}

/** The target of a takedown, and its owner. */
type Target = Pick<Takedown, 'accountId' | 'projectId' | 'host' | 'hosts'>

/** Finds a whole project. Its names stay taken down even if another project or domain gets one of them. */
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

/** Finds the owner of a host. Throws if the platform does not serve it. */
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

/** A host can be served by its own domain, a wildcard or, for a `www`, the name after it. */
async function ownerOfDomain(db: Db, host: string): Promise<Owner | null> {
  const names = namesCovering(host)
  const found = await db.domain.findMany({
    where: { name: { in: names }, verified: true },
    select: { name: true, accountId: true, projectId: true },
  })
  const serving = names.map((name) => found.find((domain) => domain.name === name)).find((domain) => domain)
  return serving ? { accountId: serving.accountId, projectId: serving.projectId } : null
}

/** Throws the error that creating the takedown would throw. */
export async function checkTakedown(db: Db, urls: Urls, { host, project }: Sound<Static<typeof CreateTakedown>>) {
  if (host !== undefined || project !== undefined) await findTarget(db, urls, { host, project })
}

type TakedownInput = Pick<Static<typeof CreateTakedown>, 'host' | 'project'>

function findTarget(db: Db, urls: Urls, { host, project }: TakedownInput): Promise<Target> {
  if (host !== undefined && project === undefined) return targetOfHost(db, urls, host)
  if (project !== undefined && host === undefined) return targetOfProject(db, urls, project)
  const detail = 'send exactly one of `host` and `project`'
  throw host === undefined
    ? invalidField('#/host', 'required', detail)
    : invalidField('#/project', 'not_allowed', detail)
}

/** Creates a takedown, or returns the one in force, even if a concurrent request creates it. */
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
      // On a conflict, this waits for the other transaction instead of raising an error, which would abort ours.
      const { count } = await db.takedown.createMany({ data: [row], skipDuplicates: true })
      if (count > 0) await appendTakedownEvent(db, 'takedown.created', row, actorName(actor))
      const found = await db.takedown.findFirst({ where: standing, include: withAccount })
      if (found) return view(found)
      // The other takedown has ended since; try again.
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

/** Ends a takedown. Has no effect, and causes no event, if it has ended already. */
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
