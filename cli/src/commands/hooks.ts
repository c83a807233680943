// `berth hooks`: URLs that start a deployment. `berth crons`: paths that are called on a schedule.
import type { Schemas } from '../../../sdk/src/types.ts'
import type { Action } from '../kit/action.ts'
import { collect } from '../kit/collect.ts'
import { requireProject } from '../kit/project.ts'
import { confirm } from '../kit/prompt.ts'
import { fromServer } from '../kit/shape.ts'
import { clean, time } from '../kit/text.ts'

type ProjectOption = { project?: string }
type Hook = Schemas['DeployHook']
type Cron = Schemas['Cron']

export const list: Action<ProjectOption> = async (context, _, given) => {
  const project = await requireProject(context, given.project)
  const params = { path: { project } }
  const hooks = await collect((await context.berth()).list('/projects/{project}/deploy-hooks', { params }))
  context.out.list(hooks, ['ID', 'NAME', 'REF', 'CREATED', 'LAST USED'], (it: Hook) => [
    it.id,
    it.name,
    it.ref ?? '(production)',
    time(it.createdAt),
    time(it.lastUsedAt),
  ])
}

export const add: Action<ProjectOption & { ref?: string }> = async (context, [name], { ref, ...given }) => {
  const project = await requireProject(context, given.project)
  const hook = await (await context.berth()).post('/projects/{project}/deploy-hooks', {
    params: { path: { project } },
    body: { name: name!, ...(ref && { ref }) },
  })
  context.out.say(`Created ${clean(hook.id)}. A POST to this URL starts a deployment. The URL is shown only once:`)
  context.out.show(hook, () => clean(hook.url))
}

export const remove: Action<ProjectOption> = async (context, [id], given) => {
  const project = await requireProject(context, given.project)
  await confirm(`Delete ${id}? Its URL will no longer start deployments.`, context.options.yes, context.signal)
  await (await context.berth()).delete('/projects/{project}/deploy-hooks/{id}', {
    params: { path: { project, id: id! } },
  })
  context.out.say(`Deleted ${id}.`)
}

export const crons: Action<ProjectOption> = async (context, _, given) => {
  const project = await requireProject(context, given.project)
  const found = await (await context.berth()).get('/projects/{project}/crons', { params: { path: { project } } })
  context.out.list(
    fromServer(() => [...found.crons]),
    ['ID', 'SCHEDULE', 'PATH', 'NEXT', 'LAST'],
    (it: Cron) => [
      it.id,
      it.schedule,
      it.path,
      time(it.nextRunAt),
      it.lastRun
        ? `${it.lastRun.outcome}${it.lastRun.status ? ` ${it.lastRun.status}` : ''}, ${time(it.lastRun.startedAt)}`
        : '-',
    ],
  )
}
