// Commands for existing deployments: list, logs, inspect, promote and rollback.
import type { Deployment } from '../../../sdk/src/types.ts'
import type { Action } from '../kit/action.ts'
import { reportResult } from '../kit/builds.ts'
import { collect, parseLimit } from '../kit/collect.ts'
import type { Context } from '../kit/context.ts'
import { findDeployment, findServing, newestDeployment, sayPinned } from '../kit/deployments.ts'
import { exitCodes, Failure } from '../kit/failures.ts'
import { checkProjectIfEmpty, findProject, requireProject } from '../kit/project.ts'
import { clean, cleanLog, time } from '../kit/text.ts'
import type { ApiResponse } from '../kit/wire.ts'

type ProjectOption = { project?: string }

export const list: Action<ProjectOption & { all?: boolean; limit: string }> = async (
  context,
  _,
  { all, limit, ...given },
) => {
  const project = all ? null : await findProject(context, given.project)
  const max = parseLimit(limit)
  const query = { ...(project && { project: [project] }), limit: Math.max(1, Math.min(100, max)) }
  const found = await collect((await context.berth()).list('/deployments', { params: { query } }), max)
  await checkProjectIfEmpty(context, project, found)
  context.out.list(found, ['ID', 'PROJECT', 'STATE', 'CREATED', 'URL'], (it: Deployment) => [
    it.id,
    it.project,
    it.current ? `${it.state} (production${it.pinned === it.id ? ', pinned' : ''})` : it.state,
    time(it.createdAt),
    it.url,
  ])
}

export const logs: Action<ProjectOption & { follow?: boolean }> = async (context, [given], { project, follow }) => {
  const { out, signal } = context
  const berth = await context.berth()
  const id = given ? (await findDeployment(context, given, project)).id : await chooseLog(context, project, follow)
  const show = (line: { stream: string; text: string }) => out.item(line, () => cleanLog(line.text))
  if (!follow) {
    for await (const line of berth.list('/deployments/{id}/logs', {
      params: { path: { id }, query: { limit: 1000 as never } },
    }))
      show(line)
    return
  }
  for await (const line of berth.logs(id, { signal })) show(line)
  return reportResult(await berth.get('/deployments/{id}', { params: { path: { id } } }), out)
}

/** The deployment in production, unless there is a build to follow; says which one it chose. */
async function chooseLog(context: Context, given: string | undefined, follow?: boolean): Promise<string> {
  const project = await requireProject(context, given)
  const newest = await newestDeployment(context, project)
  if (!newest) throw new Failure(exitCodes.notFound, `${project} has no deployments.`)
  const { id, state } = newest
  const serving = follow && state === 'BUILDING' ? null : await findServing(context, project)
  const { out } = context
  if (!serving || serving.id === id) {
    const role = serving ? 'production' : state === 'BUILDING' ? 'the build in progress' : 'the newest deployment'
    out.say(`Log of ${clean(id)}, ${role} of ${clean(newest.project)}:`)
    return id
  }
  out.say(`Log of ${clean(serving.id)}, production of ${clean(newest.project)}:`)
  out.say(`(The newest deployment is ${clean(id)}, ${clean(state)}. To see its log, run \`berth logs ${clean(id)}\`.)`)
  return serving.id
}

export const inspect: Action<ProjectOption & { wait?: boolean }> = async (context, [id], { project, wait }) => {
  const { out, signal } = context
  const berth = await context.berth()
  let found = await findDeployment(context, id!, project)
  while (wait && found.state === 'BUILDING') {
    out.progress(found.queuePosition ? `${id} is number ${found.queuePosition} in the queue …` : `Building ${id} …`)
    const params = { path: { id: id! }, query: { wait: 30 } }
    found = (await berth.get('/deployments/{id}', { params, signal } as never)) as Deployment
  }
  out.show(found, () => card(found))
  return wait ? reportResult(found, out) : exitCodes.ok
}

function card(it: Deployment): string {
  const rows: [string, unknown][] = [
    ['id', it.id],
    ['project', it.project],
    ['state', it.state],
    ['production', it.current ? 'yes, serving visitors' : it.production ? 'yes, but not serving visitors' : 'no'],
    ...(it.pinned ? [['pinned', `production is pinned to ${it.pinned}`] as [string, string]] : []),
    ['url', it.url],
    ...(it.branchUrl ? [['branch', it.branchUrl] as [string, string]] : []),
    ['source', it.source],
    ['ref', [it.ref, it.commit].filter(Boolean).join(' ')],
    ['created', time(it.createdAt)],
    ['finished', time(it.finishedAt)],
    ...it.steps.map(({ name, durationMs }): [string, string] => [name, `${(durationMs / 1000).toFixed(1)} s`]),
    ...(it.error ? [['error', `${it.error.message} (${it.error.code})`] as [string, string]] : []),
    ...(it.error?.logLine ? [['log line', it.error.logLine] as [string, number]] : []),
  ]
  return rows.map(([name, value]) => `${name.padEnd(11)} ${clean(value) || '-'}`).join('\n')
}

export const promote: Action<ProjectOption & { pin?: boolean }> = async (context, [id], { project, pin }) => {
  if (project !== undefined) await findDeployment(context, id!, project)
  const path = `/api/deployments/${encodeURIComponent(id!)}/promote`
  await showProduction(context, await context.send('POST', path, { body: pin ? { pin } : {} }))
}

export const rollback: Action<ProjectOption> = async (context, [id], { project }) => {
  const name = id ? (await findDeployment(context, id, project)).project : await requireProject(context, project)
  const path = `/api/projects/${encodeURIComponent(name)}/rollback`
  await showProduction(context, await context.send('POST', path, { body: id ? { to: id } : {} }))
}

async function showProduction(context: Context, response: ApiResponse): Promise<void> {
  const { out } = context
  const it = (await response.json()) as Deployment
  out.say(`${clean(it.id)} is now production of ${clean(it.project)}.`)
  if (response.headers.get('production-served') === 'false') {
    const { waitingFor = [] } = (await findServing(context, it.project)) ?? {}
    out.say(`Some visitors still get the previous one. Waiting for: ${waitingFor.map(clean).join(', ') || 'an edge'}.`)
  }
  out.show(it, () => clean(it.url))
  if (it.pinned) sayPinned(out, it.pinned)
}
