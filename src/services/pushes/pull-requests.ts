// Pull and merge requests: listing, approval of forks, and retention.
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

/** Returns null for text that can't be a pull request number. */
function parseNumber(text: string): number | null {
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
  const last = after === undefined ? null : parseNumber(after)
  if (after !== undefined && last === null) throw new Fault('invalid_cursor')
  const found = await db.pullRequest.findMany({
    where: {
      projectId: project.id,
      ...(last !== null && { number: page.order === 'asc' ? { gt: last } : { lt: last } }),
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
 * Builds one commit of a fork, without secrets that its author must not see. The row lock orders approvals and commits:
 * an approval after a newer commit is refused, and a commit after the approval is not approved.
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
    const number = parseNumber(text)
    await shareProject(db, { projectId })
    const [locked] = number === null ? [] : await lockPullRequest(db, { projectId, number })
    if (!locked) throw new Fault('not_found', `There is no pull request ${text} in ${project.name}.`)
    const where = { projectId_number: { projectId, number: locked.number } }
    const row = await db.pullRequest.findUniqueOrThrow({ where, include: { deployment: { select: { state: true } } } })
    if (!row.fromFork) throw new Fault('approval_not_needed')
    if (row.state !== 'OPEN') throw new Fault('pull_request_closed')
    if (row.commit !== commit)
      throw new Fault('pull_request_changed', `The latest commit of the pull request is ${row.commit}.`)
    // A second approval only rebuilds a failed or canceled deployment.
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

/** Limit of open pull requests per project; the least recently updated one is deleted first. */
export const maxOpen = 100
const maxStored = 500
const dayMs = 24 * 60 * 60_000
const retentionDays = { CLOSED: 30, OPEN: 180 }

/** Deletes old pull requests to keep the limits once the transaction of `db` adds one. */
export async function makeRoom(db: Db, projectId: string): Promise<void> {
  const limits = [
    { where: { projectId, state: 'OPEN' }, max: maxOpen },
    { where: { projectId }, max: maxStored },
  ]
  for (const { where, max } of limits) {
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

/** Deletes old pull requests. One open for half a year without an event was probably closed while the hook was off. */
export async function deleteOldPullRequests(db: Db, signal?: AbortSignal): Promise<number> {
  let removed = 0
  for (const [state, days] of Object.entries(retentionDays)) {
    const where = { state, updatedAt: { lt: new Date(Date.now() - days * dayMs) } }
    removed += await deleteInBatches(signal, (limit) => db.pullRequest.deleteMany({ where, limit }))
  }
  return removed
}
