// Deployments that are there: their list, their log, and which of them is production.
import type { Deployment } from '../../../sdk/src/types.ts'
import type { Action } from '../kit/action.ts'
import { collect, countOf } from '../kit/collect.ts'
import type { Context } from '../kit/context.ts'
import { exitCodes, Failure } from '../kit/failures.ts'
import type { Output } from '../kit/output.ts'
import { clean, cleanLog, time } from '../kit/text.ts'
import { expectProject, findProject, requireProject } from './link.ts'

type OfProject = { project?: string }

export const list: Action<OfProject & { all?: boolean; limit: string }> = async (
  context,
  _,
  { all, limit, ...given },
) => {
  const project = all ? null : await findProject(context, given.project)
  const most = countOf(limit)
  const query = { ...(project && { project: [project] }), limit: Math.max(1, Math.min(100, most)) }
  const found = await collect((await context.berth()).list('/deployments', { params: { query } }), most)
  await expectProject(context, project, found)
  const heads = ['ID', 'PROJECT', 'STATE', 'MADE', 'URL']
  context.out.list(found, heads, (it: Deployment) => [
    it.id,
    it.project,
    it.current ? `${it.state} (production)` : it.state,
    time(it.createdAt),
    it.url,
  ])
}

export const logs: Action<OfProject & { follow?: boolean }> = async (context, [given], { project, follow }) => {
  const { out, signal } = context
  const berth = await context.berth()
  const id = given ?? (await newest(context, project))
  const show = (line: { stream: string; text: string }) => out.item(line, () => cleanLog(line.text))
  if (!follow) {
    for await (const line of berth.list('/deployments/{id}/logs', {
      params: { path: { id }, query: { limit: 1000 as never } },
    }))
      show(line)
    return
  }
  for await (const line of berth.logs(id, { signal })) show(line)
  return ended(await berth.get('/deployments/{id}', { params: { path: { id } } }), out)
}

async function newest(context: Context, given: string | undefined): Promise<string> {
  const project = await requireProject(context, given)
  const query = { project: [project], limit: 1 }
  const { deployments } = await (await context.berth()).get('/deployments', { params: { query } })
  await expectProject(context, project, deployments)
  if (!deployments[0]) throw new Failure(exitCodes.notFound, `${project} has no deployments.`)
  return deployments[0].id
}

/** Tells how it went, and the exit code for that. */
export function ended({ id, state, error }: Deployment, out: Output): number {
  if (state === 'READY' || state === 'BUILDING') {
    if (state === 'READY') out.say(`${out.paint('green', 'Ready:')} ${clean(id)}`)
    return exitCodes.ok
  }
  const why = error ? `: ${clean(error.message)} (${clean(error.code)})` : ''
  out.say(`${out.paint('red', state === 'CANCELED' ? 'Canceled' : 'Failed')}${why}`)
  // Servers from before excerpts have none.
  const excerpt = error?.excerpt?.split('\n') ?? []
  if (excerpt.length > 1) for (const line of excerpt) out.say(`  ${clean(line)}`)
  return exitCodes.failed
}

export const inspect: Action<{ wait?: boolean }> = async (context, [id], { wait }) => {
  const { out, signal } = context
  const berth = await context.berth()
  const read = (seconds?: number) =>
    berth.get('/deployments/{id}', {
      params: { path: { id: id! }, query: { wait: seconds } },
      signal,
    } as never) as Promise<Deployment>
  let found = await read()
  while (wait && found.state === 'BUILDING') {
    out.progress(`${id} is ${found.queuePosition ? `number ${found.queuePosition} in the queue` : 'being built'} …`)
    found = await read(30)
  }
  out.show(found, () => card(found))
  return wait ? ended(found, out) : exitCodes.ok
}

function card(it: Deployment): string {
  const rows: [string, unknown][] = [
    ['id', it.id],
    ['project', it.project],
    ['state', it.state],
    ['production', it.current ? 'yes, visitors get it' : it.production ? 'yes' : 'no'],
    ['url', it.url],
    ['source', it.source],
    ['ref', [it.ref, it.commit].filter(Boolean).join(' ')],
    ['made', time(it.createdAt)],
    ['finished', time(it.finishedAt)],
    ...it.steps.map(({ name, durationMs }): [string, string] => [name, `${(durationMs / 1000).toFixed(1)} s`]),
    ...(it.error ? [['error', `${it.error.message} (${it.error.code})`] as [string, string]] : []),
    ...(it.error?.logLine ? [['log line', it.error.logLine] as [string, number]] : []),
  ]
  return rows.map(([name, value]) => `${name.padEnd(11)} ${clean(value) || '-'}`).join('\n')
}

export const promote: Action = async ({ berth, out }, [id]) => {
  const promoted = await (await berth()).post('/deployments/{id}/promote', { params: { path: { id: id! } } } as never)
  tellProduction(promoted as Deployment, out)
}

export const rollback: Action<OfProject> = async (context, [id], { project }) => {
  const name = id ? await projectOf(context, id) : await requireProject(context, project)
  const body = id ? { to: id } : {}
  const answer = await context.send('POST', `/api/projects/${encodeURIComponent(name)}/rollback`, { body })
  const it = (await answer.json()) as Deployment
  tellProduction(it, context.out)
  context.out.say('Later deployments do not take over until you run `berth promote`.')
}

async function projectOf({ berth }: Context, id: string): Promise<string> {
  const found = await (await berth()).get('/deployments/{id}', { params: { path: { id } } } as never)
  return (found as Deployment).project
}

function tellProduction(it: Deployment, out: Output): void {
  out.say(`${clean(it.id)} is production of ${clean(it.project)}.`)
  out.show(it, () => clean(it.url))
}
