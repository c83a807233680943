// `berth settings`: how a project is built and served.
import type { Schemas } from '../../../sdk/src/types.ts'
import type { Action } from '../kit/action.ts'
import type { Context } from '../kit/context.ts'
import { usage } from '../kit/failures.ts'
import { requireProject } from '../kit/project.ts'
import { askSecret, canAsk, readStdin } from '../kit/prompt.ts'
import { fromServer } from '../kit/shape.ts'
import { clean } from '../kit/text.ts'

type Project = Schemas['Project']
type ProjectOption = { project?: string }

type Defaults = { [K in keyof Project['settings']]: Project['settings'][K] | null }
/** What `unset` returns to; for null, the API resets them itself. */
const defaults: Defaults & { framework: Project['framework'] } = {
  framework: 'auto',
  productionBranch: null,
  rootDirectory: null,
  installCommand: null,
  buildCommand: null,
  outputDirectory: null,
  spaFallback: null,
  cleanUrls: true,
  publishAnyway: false,
  autoDeploy: true,
  hsts: false,
  buildNetwork: 'public',
  serverNetwork: 'public',
  instances: 1,
  previewProtection: 'none',
  skewProtection: false,
  watchPaths: [],
  crons: [],
}
/** Fields of a project beside its settings that are changed here too. */
const ownFields = ['framework', 'repo']
const initial = new Map<string, unknown>(Object.entries(defaults))

/** Whether a value is text, even if it looks like a number or a boolean. */
function isText(key: string): boolean {
  const value = initial.get(key)
  return (
    typeof value === 'string' || (value === null && key !== 'spaFallback') || ['repo', 'previewPassword'].includes(key)
  )
}

const cronExample = `crons='[{"path":"/api/cleanup","schedule":"0 3 * * *"}]'`

export const list: Action<ProjectOption> = async (context, _, given) => {
  const project = await requireProject(context, given.project)
  const found: Project = await (await context.berth()).get('/projects/{project}', { params: { path: { project } } })
  context.out.show(found, () => card(found))
}

function card({ name, framework, repo, productionUrl, pinned, settings }: Project): string {
  const rows: [string, unknown][] = [
    ['name', name],
    ['productionUrl', productionUrl],
    ...(pinned ? [['pinned', pinned] as [string, unknown]] : []),
    ['framework', framework],
    ['repo', repo || '-'],
    ...Object.entries(settings),
  ]
  return rows.map(([key, value]) => `${key.padEnd(18)} ${clean(format(value))}`).join('\n')
}

function format(value: unknown): unknown {
  if (value === null) return '(automatic)'
  if (!Array.isArray(value)) return value
  if (value.length === 0) return '-'
  return value.map((one) => (typeof one === 'string' ? one : `${one.path} at ${one.schedule}`)).join(', ')
}

export const set: Action<ProjectOption> = async (context, pairs, given) => {
  const project = await requireProject(context, given.project)
  const fields: [string, unknown][] = []
  for (const pair of pairs) fields.push(await fieldOf(context, pair))
  await change(context, project, fields)
}

async function fieldOf(context: Context, pair: string): Promise<[string, unknown]> {
  const at = pair.indexOf('=')
  if (at > 0) return [pair.slice(0, at), parseValue(pair.slice(0, at), pair.slice(at + 1))]
  if (pair !== 'previewPassword') throw usage(`${pair} must be written as key=value, such as cleanUrls=false.`)
  // Not from the command line, which other users of this machine can see.
  if (canAsk()) return [pair, await askSecret('Preview password:', 'the password on stdin', context.signal)]
  return [pair, (await readStdin()).replace(/\r?\n$/, '')]
}

function parseValue(key: string, text: string): unknown {
  if (isText(key)) return text
  if (key === 'watchPaths' && !text.startsWith('[')) return text.split(',').filter((path) => path !== '')
  const isList = key === 'watchPaths' || key === 'crons'
  if (!isList) return /^(true|false|null|-?\d+(\.\d+)?)$/.test(text) ? JSON.parse(text) : text
  try {
    return JSON.parse(text)
  } catch {
    throw usage(`${key} must be a list in JSON.`, key === 'crons' ? `For example: ${cronExample}` : undefined)
  }
}

export const unset: Action<ProjectOption> = async (context, keys, given) => {
  const project = await requireProject(context, given.project)
  const fields = keys.map((key): [string, unknown] => {
    if (initial.has(key)) return [key, initial.get(key)]
    throw usage(`${key} has no default.`, `Run \`berth settings set ${key}=<value>\` to change it.`)
  })
  await change(context, project, fields)
}

async function change(context: Context, project: string, fields: [string, unknown][]): Promise<void> {
  const { out } = context
  const duplicate = fields.find(([key], index) => fields.findIndex(([other]) => other === key) !== index)
  if (duplicate) throw usage(`${duplicate[0]} is given twice.`)
  const own = fields.filter(([key]) => ownFields.includes(key))
  const settings = fields.filter(([key]) => !ownFields.includes(key))
  const body = {
    ...Object.fromEntries(own),
    ...(settings.length > 0 && { settings: Object.fromEntries(settings) }),
  } as never
  const changed: Project = await (await context.berth()).patch('/projects/{project}', {
    params: { path: { project } },
    body,
  })
  const changes = fromServer(() =>
    (changed.changes ?? []).map(({ field, appliesTo }) => ({ key: field.replace(/^settings\./, ''), appliesTo })),
  )
  // The API never returns the password, so it doesn't report the change.
  if (settings.some(([key]) => key === 'previewPassword')) changes.push({ key: 'previewPassword', appliesTo: 'now' })
  for (const { key, appliesTo } of changes) out.say(`Changed ${clean(key)}. ${effects[appliesTo]}`)
  if (changes.length === 0) out.say('Nothing changed: the project already has these settings.')
  out.show(changed, () => '')
}

const effects: Record<NonNullable<Project['changes']>[number]['appliesTo'], string> = {
  now: 'It applies now.',
  'next start': 'It applies when a server next starts.',
  'next deployment': 'It applies from the next deployment.',
}
