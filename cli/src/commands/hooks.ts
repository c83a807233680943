// `berth hooks`: addresses that start a deployment. `berth crons`: what is called on a schedule.
import type { Context } from '../kit/context.ts'
import { confirm } from '../kit/prompt.ts'
import { clean, time } from '../kit/text.ts'
import type { Action } from '../program.ts'
import { requireProject } from './link.ts'

type OfProject = { project?: string }
type Hook = { id: string; name: string; ref: string | null; createdAt: string; lastUsedAt: string | null }
type NewHook = Hook & { url: string }
type Run = { outcome: string; status: number | null; startedAt: string }
type Cron = { id: string; path: string; schedule: string; nextRunAt: string; lastRun: Run | null }

async function pathOf(context: Context, given: string | undefined, rest: string): Promise<string> {
  return `/api/projects/${encodeURIComponent(await requireProject(context, given))}/${rest}`
}

export const list: Action<OfProject> = async (context, _, { project }) => {
  const path = await pathOf(context, project, 'deploy-hooks')
  const hooks: Hook[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query: string = cursor === '' ? '?limit=100' : `?limit=100&cursor=${encodeURIComponent(cursor)}`
    const page = await (await context.send('GET', `${path}${query}`)).json()
    hooks.push(...(page.deployHooks as Hook[]))
    cursor = page.nextCursor
  }
  context.out.list(hooks, ['ID', 'NAME', 'REF', 'MADE', 'USED'], (it: Hook) => [
    it.id,
    it.name,
    it.ref ?? '(production)',
    time(it.createdAt),
    time(it.lastUsedAt),
  ])
}

export const add: Action<OfProject & { ref?: string }> = async (context, [name], { project, ref }) => {
  const path = await pathOf(context, project, 'deploy-hooks')
  const made: NewHook = await (await context.send('POST', path, { body: { name, ...(ref && { ref }) } })).json()
  context.out.say(`Made ${clean(made.id)}. Whoever posts to its address starts a deployment; it is shown this once:`)
  context.out.show(made, () => clean(made.url))
}

export const remove: Action<OfProject> = async (context, [id], { project }) => {
  const path = await pathOf(context, project, `deploy-hooks/${encodeURIComponent(id!)}`)
  await confirm(`Delete ${id}? Its address starts nothing any more.`, context.options.yes, context.signal)
  await context.send('DELETE', path)
  context.out.say(`Deleted ${id}.`)
}

export const crons: Action<OfProject> = async (context, _, { project }) => {
  const found = await (await context.send('GET', await pathOf(context, project, 'crons'))).json()
  context.out.list(found.crons, ['ID', 'SCHEDULE', 'PATH', 'NEXT', 'LAST'], (it: Cron) => [
    it.id,
    it.schedule,
    it.path,
    time(it.nextRunAt),
    it.lastRun
      ? `${it.lastRun.outcome}${it.lastRun.status ? ` ${it.lastRun.status}` : ''}, ${time(it.lastRun.startedAt)}`
      : '-',
  ])
}
