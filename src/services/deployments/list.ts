// Lists deployments in pages by id, with any of the filters.
import type { Static } from '@sinclair/typebox'
import type { Db } from '../../platform/database/database.ts'
import { pageBounds } from '../../platform/database/facet-statements.ts'
import { byId, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { type DeploymentQuery, deploymentStates } from '../../schemas/deployments.ts'
import type { Actor } from '../identity/index.ts'
import { projectIdsOf } from '../projects/index.ts'
import { type DeploymentView, rowOf, viewDeployment, waits, withProject } from './deployments.ts'
import {
  deploymentPage,
  deploymentPageOfCommit,
  deploymentPageOfRef,
  filteredDeploymentPage,
} from './list-statements.ts'
import { queuePositions } from './queue.ts'

type Filter = Pick<Static<typeof DeploymentQuery>, 'project' | 'state' | 'production' | 'ref' | 'commit'>
export type DeploymentsListed = { filter: Filter; page: PageRequest }

export async function listDeployments(
  db: Db,
  urls: Urls,
  actor: Actor,
  { filter, page }: DeploymentsListed,
): Promise<PageOf<DeploymentView>> {
  const ids = await pageIds(db, actor, filter, page)
  const { where, ...rest } = byId(page, 'dpl')
  const found = await db.deployment.findMany({
    // With both conditions, PostgreSQL may scan an index that starts with the account for each id.
    where: ids ? { id: { in: ids } } : { ...where, accountId: actor.accountId },
    include: withProject,
    ...rest,
  })
  const { items, ...end } = pageOf(
    found,
    page,
    (row) => row,
    (row) => [row.id],
  )
  // A second statement reads the projects. One deleted in between is null, and so are its deployments.
  const rows = items.filter((row) => row.project).map(rowOf)
  const waiting = rows.filter(waits).map(({ id }) => id)
  const positions = await queuePositions(db, waiting)
  return { items: rows.map((row) => viewDeployment(urls, row, positions.get(row.id))), ...end }
}

/** The ids of the page; null for all deployments of the account, which need no separate query. */
async function pageIds(
  db: Db,
  actor: Actor,
  { project, state, production, ref, commit }: Filter,
  page: PageRequest,
): Promise<string[] | null> {
  const isFiltered = state !== undefined || production !== undefined || !!ref || commit !== undefined
  if (!isFiltered && project === undefined && !actor.projectIds) return null
  const owners = await ownersOf(db, actor, project)
  const bounds = pageBounds(page, 'dpl')
  const facets = {
    ...bounds,
    states: state ?? deploymentStates,
    productions: production === undefined ? [true, false] : [production],
  }
  const found =
    commit !== undefined
      ? await deploymentPageOfCommit[page.order](db, {
          ...facets,
          accountIds: [actor.accountId],
          commit: commit.toLowerCase(),
          projectIds: owners.kind === 'project' ? owners.ids : null,
          ref: ref || null,
        })
      : !isFiltered
        ? await deploymentPage[page.order](db, { ...bounds, owners: owners.ids })
        : ref
          ? await deploymentPageOfRef[owners.kind][page.order](db, { ...facets, owners: owners.ids, refs: [ref] })
          : await filteredDeploymentPage[owners.kind][page.order](db, { ...facets, owners: owners.ids })
  return found.map(({ id }) => id)
}

/** Whose deployments are listed: the account's, or those of projects, none of which may be there. */
async function ownersOf(db: Db, actor: Actor, projects: string[] | undefined) {
  if (projects !== undefined) return { kind: 'project', ids: await projectIdsOf(db, actor, projects) } as const
  if (actor.projectIds) return { kind: 'project', ids: actor.projectIds } as const
  return { kind: 'account', ids: [actor.accountId] } as const
}
