// `berth env`: variables of a project.
import { readFile, writeFile } from 'node:fs/promises'
import type { Schemas } from '../../../sdk/src/types.ts'
import type { Action } from '../kit/action.ts'
import type { Context } from '../kit/context.ts'
import { usage } from '../kit/failures.ts'
import { requireProject } from '../kit/project.ts'
import { askUnseen, canAsk, confirm, readStdin } from '../kit/prompt.ts'
import { clean, time } from '../kit/text.ts'

type Variable = Schemas['Variable']
type OfProject = { project?: string }

async function read(context: Context, given: string | undefined): Promise<Variable[]> {
  const path = { project: await requireProject(context, given) }
  return (await (await context.berth()).get('/projects/{project}/env', { params: { path } })).env
}

export const list: Action<OfProject> = async (context, _, { project }) => {
  const found = await read(context, project)
  const heads = ['KEY', 'TARGET', 'VALUE', 'CHANGED']
  context.out.list(found, heads, (it: Variable) => [
    it.key,
    it.target,
    it.readable ? it.value : '(secret)',
    time(it.updatedAt),
  ])
}

export const set: Action<OfProject & { target: string; readable?: boolean }> = async (
  context,
  [key, given],
  options,
) => {
  const project = await requireProject(context, options.project)
  // Not on the command line, where others of the machine see it.
  const value =
    given ??
    (canAsk()
      ? await askUnseen(`Value of ${key}:`, 'a value', context.signal)
      : (await readStdin()).replace(/\r?\n$/, ''))
  const { target, readable = false } = options
  const init = { params: { path: { project, key: key! } }, body: { value, target, readable } } as never
  const kept = await (await context.berth()).put('/projects/{project}/env/{key}', init)
  context.out.say(
    `Set ${key} of ${project} for ${target === 'all' ? 'all deployments' : target}; the next deployment has it.`,
  )
  context.out.show(kept, () => '')
}

export const remove: Action<OfProject & { target?: string }> = async (context, [key], options) => {
  const project = await requireProject(context, options.project)
  await confirm(`Delete ${key} of ${project}?`, context.options.yes, context.signal)
  const query = options.target ? { target: options.target } : {}
  const init = { params: { path: { project, key: key! }, query } } as never
  await (await context.berth()).delete('/projects/{project}/env/{key}', init)
  context.out.say(`Deleted ${key} of ${project}.`)
}

export const pull: Action<OfProject & { target: string }> = async (context, [file = '.env.local'], options) => {
  if (options.target !== 'production' && options.target !== 'preview')
    throw usage('--target must be production or preview.')
  const found = await read(context, options.project)
  // One of the target goes before that of all.
  const values = new Map<string, Variable>()
  for (const target of ['all', options.target]) for (const it of found) if (it.target === target) values.set(it.key, it)
  const readable = [...values.values()].filter((it) => it.value !== null)
  const secret = [...values.keys()].filter((key) => values.get(key)!.value === null)
  const before = await readFile(file, 'utf8').catch(() => null)
  if (before !== null) await confirm(`Replace ${file}?`, context.options.yes, context.signal)
  await writeFile(file, readable.map(({ key, value }) => `${key}=${quoted(value!)}\n`).join(''), { mode: 0o600 })
  context.out.say(`Wrote ${readable.length} ${readable.length === 1 ? 'variable' : 'variables'} to ${file}.`)
  if (secret.length > 0) context.out.say(`Secret, and never returned: ${secret.map(clean).join(', ')}`)
  context.out.show(readable, () => '')
}

function quoted(value: string): string {
  return /^[\w./:@%+,-]*$/.test(value) ? value : JSON.stringify(value).replaceAll('$', '\\$')
}
