// Projects: their rules, their settings, and the one production address each of them keeps for ever.
import type { Static } from '@sinclair/typebox'
import type { Project } from '../../generated/client.ts'
import { enqueue } from '../../jobs/queue.ts'
import { initialOf } from '../../platform/database/columns.ts'
import { type Db, inTransaction, violation } from '../../platform/database/database.ts'
import { containing, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault, invalidField } from '../../platform/errors.ts'
import type { AddressRules } from '../../platform/git/repository-address.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { newId } from '../../platform/ids.ts'
import {
  type ChangeProject,
  type CreateProject,
  type ProjectQuery,
  Project as ProjectSchema,
} from '../../schemas/projects.ts'
import { append, eventOf } from '../events/index.ts'
import { type Actor, actorName, projectsOf } from '../identity/index.ts'
import { endMootTakedowns, findNotice } from '../takedowns/index.ts'
import { writeCrons } from './crons.ts'
import { isReserved, productionLabels } from './labels.ts'
import { formerlyNamed, isProjectId, refuseTakenName, renaming, takenName, withKey } from './names.ts'
import { type Hashed, previewChange } from './previews.ts'
import { changesBetween, checkSettings, initialColumns, storedSettings, viewSettings } from './settings.ts'
import { claimLabel, listProjectRows, lockProject, type ProjectRow } from './statements.ts'

export type ProjectView = Static<typeof ProjectSchema>

const viewRow = viewOf(ProjectSchema)

export function viewProject(urls: Urls, row: ProjectRow): ProjectView {
  return viewRow(row, {
    productionUrl: urls.deployment(row.label),
    settings: viewSettings(row),
    pinned: row.pinnedDeploymentId,
  })
}

/** The project as it is read by itself, with the takedown of its production host, if one stands. */
export async function showProject(db: Db, urls: Urls, row: Project): Promise<ProjectView> {
  return { ...viewProject(urls, row), takedown: await findNotice(db, row.id, urls.host(row.label)) }
}

/** The project of the actor by name or id. */
export async function findProject(db: Db, actor: Actor, key: string): Promise<Project> {
  const read = (is: { id: string } | { name: string }) =>
    db.project.findFirst({ where: { AND: [projectsOf(actor), is] } })
  const row = await read(isProjectId(key) ? { id: key } : { name: key })
  if (row) return row
  const former = await formerlyNamed(db, actor.accountId, key)
  const renamed = former && (await read({ id: former }))
  if (!renamed) throw new Fault('not_found', `There is no project ${key}.`)
  return renamed
}

/** The ids of those projects that are the actor's: for the filters of other lists. */
export async function projectIdsOf(db: Db, actor: Actor, keys: string[]): Promise<string[]> {
  const where = { AND: [projectsOf(actor), { OR: keys.map(withKey) }] }
  return (await db.project.findMany({ where, select: { id: true } })).map(({ id }) => id)
}

/** The same for a project that a body names beside other fields: refused as one of them. */
export async function checkProjectField(db: Db, actor: Actor, key: string | undefined): Promise<void> {
  if (key === undefined) return
  await findProject(db, actor, key).catch((error) => {
    if (!(error instanceof Fault) || error.code !== 'not_found') throw error
    throw invalidField('#/project', 'not_found', error.message)
  })
}

/** As `findProject`, with the project locked against other changes until the transaction ends. */
export async function findProjectToChange(db: Db, actor: Actor, key: string): Promise<Project> {
  const { accountId, projectIds } = actor
  const [locked] = await lockProject(db, { accountId, projectIds, key })
  if (locked) return findProject(db, actor, locked.id)
  const former = await formerlyNamed(db, accountId, key)
  if (former) await lockProject(db, { accountId, projectIds, key: former })
  return findProject(db, actor, key)
}

export type ProjectsListed = { filter: Static<typeof ProjectQuery>; page: PageRequest }

export async function listProjects(
  db: Db,
  urls: Urls,
  actor: Actor,
  { filter: { framework, repo, search }, page }: ProjectsListed,
): Promise<PageOf<ProjectView>> {
  const { accountId, projectIds } = actor
  const [after = null] = page.after ?? []
  const limit = page.limit + 1
  const descending = page.order === 'desc'
  const all = !projectIds && !framework && !repo && !search && !descending
  const found = all
    ? await listProjectRows(db, { accountId, after, limit })
    : await db.project.findMany({
        where: {
          AND: [
            projectsOf(actor),
            { framework: framework && { in: framework }, repo: repo || undefined },
            matching(search),
          ],
          ...(after !== null && { name: descending ? { lt: after } : { gt: after } }),
        },
        orderBy: { name: page.order },
        take: limit,
      })
  return pageOf(
    found,
    page,
    (row) => viewProject(urls, row),
    (row) => [row.name],
  )
}

/** Projects whose name or repository contains the text, in any case. */
function matching(search: string | undefined) {
  return search ? { OR: [{ name: containing(search) }, { repo: containing(search) }] } : {}
}

const initialProject = initialOf('Project')

export async function createProject(
  db: Db,
  urls: Urls,
  actor: Actor,
  {
    region,
    input,
    passwordHash,
    rules,
  }: { region: string; input: Static<typeof CreateProject>; rules?: AddressRules } & Hashed,
): Promise<ProjectView> {
  if (actor.projectIds) throw new Fault('token_limited_to_projects')
  checkSettings(input, rules)
  const now = new Date()
  const { settings = {} } = input
  const row: Project = {
    ...initialProject,
    ...initialColumns,
    ...storedSettings(settings),
    ...previewChange(initialProject, settings, passwordHash),
    id: newId('prj'),
    accountId: actor.accountId,
    name: input.name,
    framework: input.framework ?? 'auto',
    repo: input.repo ?? '',
    region,
    label: input.name,
    createdAt: now,
    updatedAt: now,
  }
  return inTransaction(db, async (db) => {
    await insertProject(db, urls, row)
    await writeCrons(db, row.id, settings.crons ?? [])
    const view = viewProject(urls, row)
    await append(db, [eventOf(actor, 'project.created', { subject: row.id, projectId: row.id, data: view })])
    return { ...view, takedown: await findNotice(db, row.id, urls.host(row.label)) }
  })
}

/** Inserts the row under the first label that is free; a conflict raises no error, which would end the transaction. */
async function insertProject(db: Db, urls: Urls, row: Project): Promise<void> {
  const { accountId, name } = row
  await refuseTakenName(db, row, name)
  for await (const label of productionLabels(db, accountId, name)) {
    if (isReserved(urls, label)) continue
    const claimed = await claimLabel(db, { label, accountId, projectName: name })
    if (claimed.length === 0) continue
    row.label = label
    const made = await db.project.createMany({ data: [row], skipDuplicates: true })
    if (made.count > 0) return
    const same = await db.project.count({ where: { accountId, name } })
    if (same > 0) throw takenName(name)
  }
  throw new Error('no free label found for a project')
}

export type ProjectChange = Hashed & {
  key: string
  input: Static<typeof ChangeProject>
  rules?: AddressRules
  precondition(view: ProjectView): void
}

export async function changeProject(
  db: Db,
  urls: Urls,
  actor: Actor,
  { key, input, passwordHash, rules, precondition }: ProjectChange,
): Promise<{ view: ProjectView; changes: NonNullable<ProjectView['changes']> }> {
  checkSettings(input, rules)
  return inTransaction(db, async (db) => {
    const before = await findProjectToChange(db, actor, key)
    const shown = await showProject(db, urls, before)
    precondition(shown)
    const { settings = {}, name, ...fields } = input
    const change = db.project.update({
      where: { id: before.id },
      data: {
        ...(await renaming(db, before, name)),
        ...fields,
        ...storedSettings(settings),
        ...branchChange(before, input),
        ...previewChange(before, settings, passwordHash),
        updatedAt: new Date(),
      },
    })
    const after = await change.catch((error) => {
      // Another project got the name since it was looked for.
      throw input.name !== undefined && violation(error)?.kind === 'unique' ? takenName(input.name) : error
    })
    if (settings.crons) await writeCrons(db, before.id, settings.crons)
    const view = { ...viewProject(urls, after), takedown: shown.takedown }
    await append(db, [eventOf(actor, 'project.updated', { subject: before.id, projectId: before.id, data: view })])
    return { view, changes: changesBetween(shown, view) }
  })
}

/** The default branch is that of its repository; a project that begins to follow it begins with the last one known. */
function branchChange(before: Project, { repo, settings }: Static<typeof ChangeProject>): Partial<Project> {
  if (repo !== undefined && repo !== before.repo) return { defaultBranch: null }
  const follows = settings?.productionBranch === null && before.defaultBranch !== null
  return follows ? { productionBranch: before.defaultBranch! } : {}
}

/** Takes the deployments along, and refuses while domains are attached. */
export async function deleteProject(
  db: Db,
  urls: Urls,
  actor: Actor,
  { key, precondition }: Pick<ProjectChange, 'key' | 'precondition'>,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const row = await findProjectToChange(db, actor, key)
    const view = viewProject(urls, row)
    precondition(await showProject(db, urls, row))
    const domains = await db.domain.findMany({ where: { projectId: row.id }, select: { name: true }, take: 3 })
    if (domains.length > 0) {
      const names = domains.map((domain) => domain.name).join(', ')
      throw new Fault('project_has_domains', `Domains are attached to ${row.name}: ${names}. Delete them first.`)
    }
    const deployments = await db.deployment.findMany({
      where: { projectId: row.id },
      select: { id: true, label: true },
    })
    const labels = deployments.map(({ label }) => label)
    await endMootTakedowns(db, urls, { projectId: row.id, labels, by: actorName(actor) })
    await db.project.delete({ where: { id: row.id } })
    await enqueue(db, {
      kind: 'reap',
      key: row.id,
      payload: { deploymentIds: deployments.map(({ id }) => id), projectId: row.id },
    })
    await append(db, [eventOf(actor, 'project.deleted', { subject: row.id, projectId: row.id, data: view })])
  })
}
