// Pull and merge requests: listed, approved where they come from a fork, and forgotten.
import type { Static } from '@sinclair/typebox'
import type { PullRequest } from '../../generated/client.ts'
import { deleteInBatches } from '../../platform/batches.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault } from '../../platform/errors.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { PullRequest as PullRequestSchema } from '../../schemas/pull-requests.ts'
import { createDeployment, supersede } from '../deployments/index.ts'
import { append, eventOf } from '../events/index.ts'
import { type Actor, actorName } from '../identity/index.ts'
import { findProject } from '../projects/index.ts'
import { lockPullRequest, shareProject } from './statements.ts'

export type PullRequestView = Static<typeof PullRequestSchema>

export const isApproved = ({ commit, approvedCommit }: Pick<PullRequest, 'commit' | 'approvedCommit'>): boolean =>
  commit === approvedCommit

const viewRow = viewOf(PullRequestSchema)

function view(project: string, row: PullRequest): PullRequestView {
  const approved = isApproved(row)
  return viewRow(row, {
    project,
    commit: row.commit.slice(0, 7),
    commitSha: row.commit,
    approval: row.fromFork ? (approved ? 'approved' : 'needed') : 'not_needed',
    approvedBy: row.fromFork && approved ? row.approvedBy : null,
    deployment: row.deploymentId,
  })
}

const maxNumber = 2 ** 31 - 1

/** Null for what no request has as its number. */
function numberIn(text: string): number | null {
  const number = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : 0
  return number >= 1 && number <= maxNumber ? number : null
}

export async function listPullRequests(
  db: Db,
  actor: Actor,
  key: string,
  page: PageRequest,
): Promise<PageOf<PullRequestView>> {
  const project = await findProject(db, actor, key)
  const [after] = page.after ?? []
  const place = after === undefined ? null : numberIn(after)
  if (after !== undefined && place === null) throw new Fault('invalid_cursor')
  const found = await db.pullRequest.findMany({
    where: {
      projectId: project.id,
      ...(place !== null && { number: page.order === 'asc' ? { gt: place } : { lt: place } }),
    },
    orderBy: { number: page.order },
    take: page.limit + 1,
  })
  return pageOf(
    found,
    page,
    (row) => view(project.name, row),
    (row) => [String(row.number)],
  )
}

export type Approval = { key: string; number: string; commit: string; region: string }

/**
 * Has one commit of a fork built, without anything that its author should not see. The row is locked: a newer commit comes
 * before the approval, which is refused then, or after it, and is not approved.
 */
export async function approvePullRequest(
  db: Db,
  urls: Urls,
  actor: Actor,
  { key, number: text, commit, region }: Approval,
): Promise<PullRequestView> {
  return inTransaction(db, async (db) => {
    const project = await findProject(db, actor, key)
    const projectId = project.id
    const number = numberIn(text)
    await shareProject(db, { projectId })
    const [locked] = number === null ? [] : await lockPullRequest(db, { projectId, number })
    if (!locked) throw new Fault('not_found', `There is no pull request ${text} in ${project.name}.`)
    const where = { projectId_number: { projectId, number: locked.number } }
    const row = await db.pullRequest.findUniqueOrThrow({ where, include: { deployment: { select: { state: true } } } })
    if (!row.fromFork) throw new Fault('approval_not_needed')
    if (row.state !== 'OPEN') throw new Fault('pull_request_closed')
    if (row.commit !== commit)
      throw new Fault('pull_request_changed', `The latest commit of the pull request is ${row.commit}.`)
    // A second approval has what failed or was canceled built again, and nothing else.
    const isBuilt = row.deployment?.state === 'READY' || row.deployment?.state === 'BUILDING'
    if (isApproved(row) && isBuilt) return view(project.name, row)
    const { ref } = row
    await supersede(db, urls, { projectId, ref, before: null })
    const built = { ref, isBranch: true, commit, production: false, source: 'pull_request', untrusted: true } as const
    const plan = { ...built, project, region }
    const { id } = await createDeployment(db, urls, actor, plan)
    const now = new Date()
    const approved = { approvedCommit: commit, approvedBy: actorName(actor), deploymentId: id, updatedAt: now }
    const data = view(project.name, await db.pullRequest.update({ where, data: approved }))
    await append(db, [eventOf(actor, 'pull_request.approved', { subject: projectId, projectId, data })])
    return data
  })
}

/** Those that are open count up to this; of more, the one that changed first is forgotten. */
export const maxOpen = 100
const maxKept = 500
const dayMs = 24 * 60 * 60_000
const keptDays = { CLOSED: 30, OPEN: 180 }

/** Makes room for one more; `db` is the handle of the transaction that adds it. */
export async function makeRoom(db: Db, projectId: string): Promise<void> {
  const bounds = [
    { where: { projectId, state: 'OPEN' }, max: maxOpen },
    { where: { projectId }, max: maxKept },
  ]
  for (const { where, max } of bounds) {
    const count = await db.pullRequest.count({ where })
    if (count < max) continue
    const oldest = await db.pullRequest.findMany({
      where,
      // CLOSED before OPEN.
      orderBy: [{ state: 'asc' }, { updatedAt: 'asc' }],
      take: count - max + 1,
      select: { number: true },
    })
    await db.pullRequest.deleteMany({ where: { projectId, number: { in: oldest.map(({ number }) => number) } } })
  }
}

/** An open one that nothing was heard of for half a year may have been closed while the hook was off. */
export async function forgetOldPullRequests(db: Db, signal?: AbortSignal): Promise<number> {
  let removed = 0
  for (const [state, days] of Object.entries(keptDays)) {
    const where = { state, updatedAt: { lt: new Date(Date.now() - days * dayMs) } }
    removed += await deleteInBatches(signal, (limit) => db.pullRequest.deleteMany({ where, limit }))
  }
  return removed
}
