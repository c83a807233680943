// Search across projects, domains, deployments and tickets, limited to what the token may read.
import type { Static } from '@sinclair/typebox'
import type { Config } from '../../config.ts'
import type { Db } from '../../platform/database/database.ts'
import type { PageRequest } from '../../platform/database/page.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { type SearchQuery, type SearchResults, searchedKinds } from '../../schemas/search.ts'
import { type DeploymentView, listDeployments, rowOf, viewDeployment, withProject } from '../deployments/index.ts'
import { type DomainView, listDomains } from '../domains/index.ts'
import { type Actor, allows, inProjectsOf, projectsOf } from '../identity/index.ts'
import { listProjects, type ProjectView, viewProject } from '../projects/index.ts'
import { asCustomer, listTickets, type TicketView, viewTicket } from '../tickets/index.ts'

export type SearchDeps = { db: Db; urls: Urls; config: Pick<Config, 'nameservers'> }

type Kind = (typeof searchedKinds)[number]

/** Tickets belong to the account, so a token limited to projects can't read them. */
function mayRead(actor: Actor, kind: Kind): boolean {
  return allows(actor.scopes, `${kind}:read`) && !(kind === 'tickets' && actor.projectIds)
}

export async function search(
  deps: SearchDeps,
  actor: Actor,
  { q, limit = 5 }: Static<typeof SearchQuery>,
): Promise<Static<typeof SearchResults>> {
  const text = q.trim()
  const searched = searchedKinds.filter((kind) => mayRead(actor, kind))
  const find = <T>(
    kind: Kind,
    finder: (deps: SearchDeps, actor: Actor, text: string, limit: number) => Promise<T[]>,
  ) => (searched.includes(kind) ? finder(deps, actor, text, limit) : [])
  // Sequentially, so a search uses one connection like every other request.
  return {
    projects: await find('projects', findProjects),
    domains: await find('domains', findDomains),
    deployments: await find('deployments', findDeployments),
    tickets: await find('tickets', findTickets),
    searched,
  }
}

const first = (limit: number, order: PageRequest['order']): PageRequest => ({ limit, order, after: null })

async function findProjects(
  { db, urls }: SearchDeps,
  actor: Actor,
  text: string,
  limit: number,
): Promise<ProjectView[]> {
  if (text.startsWith('prj_')) {
    const found = await db.project.findMany({ where: { AND: [projectsOf(actor), { id: text }] } })
    return found.map((row) => viewProject(urls, row))
  }
  const listed = { filter: { search: text.slice(0, 140) }, page: first(limit, 'asc') }
  return (await listProjects(db, urls, actor, listed)).items
}

async function findDomains(
  { db, config }: SearchDeps,
  actor: Actor,
  text: string,
  limit: number,
): Promise<DomainView[]> {
  return (await listDomains(db, config, actor, { filter: { search: text }, page: first(limit, 'desc') })).items
}

async function findTickets({ db }: SearchDeps, actor: Actor, text: string, limit: number): Promise<TicketView[]> {
  if (text.startsWith('tkt_')) {
    const found = await db.ticket.findMany({ where: { id: text, accountId: actor.accountId } })
    return found.map(viewTicket)
  }
  return (await listTickets(db, asCustomer(actor), { search: text }, first(limit, 'desc'))).items
}

/** Finds deployments by id or URL, then by commit, then by ref. */
async function findDeployments(
  { db, urls }: SearchDeps,
  actor: Actor,
  text: string,
  limit: number,
): Promise<DeploymentView[]> {
  const named = await db.deployment.findMany({
    where: { ...inProjectsOf(actor), OR: [{ id: text }, { label: labelOf(text) }] },
    include: withProject,
    take: 2,
  })
  const views = named.filter((row) => row.project).map((row) => viewDeployment(urls, rowOf(row)))
  const list = async (filter: { commit: string } | { ref: string }) =>
    (await listDeployments(db, urls, actor, { filter, page: first(limit, 'desc') })).items
  const byCommit = /^[0-9A-Fa-f]{7,64}$/.test(text) ? await list({ commit: text }) : []
  const all = [...views, ...byCommit, ...(await list({ ref: text }))]
  return [...new Map(all.map((view) => [view.id, view])).values()].slice(0, limit)
}

/** The first label of a URL or host, such as `hello-7m2k9xq4t`. */
function labelOf(text: string): string {
  return text
    .replace(/^https?:\/\//, '')
    .split(/[./:]/, 1)[0]!
    .toLowerCase()
}
