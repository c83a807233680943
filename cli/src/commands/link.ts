// `berth link`: links a folder to a project.
import type { Action } from '../kit/action.ts'
import { linkFile, writeLink } from '../kit/project.ts'
import { ask } from '../kit/prompt.ts'
import { clean } from '../kit/text.ts'

export const link: Action<{ project?: string }> = async (context, [given], options) => {
  const { out, signal } = context
  const berth = await context.berth()
  const project = given ?? options.project ?? (await ask('Which project?', '--project <name>', signal))
  const found = await berth.get('/projects/{project}', { params: { path: { project } } })
  await writeLink('.', found.name)
  out.say(`Linked to ${clean(found.name)} (${linkFile}).`)
  out.show(found, () => '')
}
