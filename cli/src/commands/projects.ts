// `berth projects`: the projects of the account.
import type { Schemas } from '../../../sdk/src/types.ts'
import type { Action } from '../kit/action.ts'
import { collect } from '../kit/collect.ts'
import { confirm } from '../kit/prompt.ts'
import { clean, time } from '../kit/text.ts'

type Project = Schemas['Project']

export const list: Action = async ({ berth, out }) => {
  const projects = await collect((await berth()).list('/projects'))
  out.list(projects, ['NAME', 'FRAMEWORK', 'PRODUCTION', 'PINNED TO', 'CREATED'], (it: Project) => [
    it.name,
    it.framework,
    it.productionUrl,
    it.pinned,
    time(it.createdAt),
  ])
}

type New = { framework?: string; repo?: string }

export const create: Action<New> = async ({ berth, out }, [name], options) => {
  const body = { name, ...options } as never
  const created: Project = await (await berth()).post('/projects', { body })
  out.say(`Created ${clean(created.name)}.`)
  out.show(created, () => clean(created.productionUrl))
}

export const remove: Action = async ({ berth, out, options, signal }, [name]) => {
  await confirm(`Delete ${name} with all its deployments?`, options.yes, signal)
  await (await berth()).delete('/projects/{project}', { params: { path: { project: name! } } })
  out.say(`Deleted ${name}.`)
}

export const rename: Action = async ({ berth, out }, [project, name]) => {
  const params = { path: { project: project! } }
  const renamed: Project = await (await berth()).patch('/projects/{project}', { params, body: { name: name! } })
  out.say(`Renamed ${clean(project!)} to ${clean(renamed.name)}. The old name still works.`)
  out.show(renamed, () => clean(renamed.name))
}
