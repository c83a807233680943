// `berth env`: variables of a project.
import { randomUUID } from 'node:crypto'
import { lstat, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { InvalidResponse } from '../../../sdk/src/errors.ts'
import type { Schemas } from '../../../sdk/src/types.ts'
import type { Action } from '../kit/action.ts'
import type { Context } from '../kit/context.ts'
import { usage } from '../kit/failures.ts'
import { requireProject } from '../kit/project.ts'
import { askSecret, canAsk, confirm, readStdin } from '../kit/prompt.ts'
import { fromServer } from '../kit/shape.ts'
import { clean, count, time } from '../kit/text.ts'

type Variable = Schemas['Variable']
type ProjectOption = { project?: string }

async function read(context: Context, given: string | undefined): Promise<Variable[]> {
  const path = { project: await requireProject(context, given) }
  const found = await (await context.berth()).get('/projects/{project}/env', { params: { path } })
  return fromServer(() => found.env.map((it) => ({ ...it })))
}

export const list: Action<ProjectOption> = async (context, _, { project }) => {
  const found = await read(context, project)
  const heads = ['KEY', 'TARGET', 'VALUE', 'CHANGED']
  context.out.list(found, heads, (it: Variable) => [
    it.key,
    it.target,
    it.readable ? it.value : '(secret)',
    time(it.updatedAt),
  ])
}

type Set = ProjectOption & { target: string; secret?: boolean; readable?: boolean }

export const set: Action<Set> = async (context, [key, given], options) => {
  const { target, secret, readable } = options
  if (secret && readable) throw usage('Give --secret or --readable, not both.')
  const project = await requireProject(context, options.project)
  const isSecret = secret ?? (readable ? false : await hasSecret(context, project, key!))
  const value = given ?? (await readValue(context, key!))
  const init = { params: { path: { project, key: key! } }, body: { value, target, readable: !isSecret } } as never
  const variable: Variable = await (await context.berth()).put('/projects/{project}/env/{key}', init)
  const deployments = target === 'all' ? 'all deployments' : `${target} deployments`
  context.out.say(`Set ${key} of ${project} for ${deployments}. It applies from the next deployment.`)
  context.out.say(
    isSecret
      ? 'It is secret: nobody can read its value again.'
      : 'Members and tokens that can read the project can read its value. Use --secret to hide it.',
  )
  context.out.show(variable, () => '')
}

/** A secret stays secret when its value changes. */
async function hasSecret(context: Context, project: string, key: string): Promise<boolean> {
  const params = { path: { project, key } }
  const found = await (await context.berth()).get('/projects/{project}/env/{key}', { params }).catch((error) => {
    if (error.status === 404) return null
    throw error
  })
  return fromServer(() => found?.values.some(({ readable }) => !readable)) ?? false
}

/** Not from the command line: other users of this machine can see it. */
async function readValue({ signal }: Context, key: string): Promise<string> {
  return canAsk() ? askSecret(`Value of ${key}:`, 'a value', signal) : (await readStdin()).replace(/\r?\n$/, '')
}

export const remove: Action<ProjectOption & { target?: string }> = async (context, [key], options) => {
  const project = await requireProject(context, options.project)
  await confirm(`Delete ${key} of ${project}?`, context.options.yes, context.signal)
  const query = options.target ? { target: options.target } : {}
  const init = { params: { path: { project, key: key! }, query } } as never
  await (await context.berth()).delete('/projects/{project}/env/{key}', init)
  context.out.say(`Deleted ${key} of ${project}.`)
}

export const pull: Action<ProjectOption & { target: string }> = async (context, [file = '.env.local'], options) => {
  if (options.target !== 'production' && options.target !== 'preview')
    throw usage('--target must be production or preview.')
  const found = await read(context, options.project)
  // A value for the target overrides the one for all.
  const values = new Map<string, Variable>()
  for (const target of ['all', options.target]) for (const it of found) if (it.target === target) values.set(it.key, it)
  const variables = [...values.values()].sort((one, other) => (one.key < other.key ? -1 : 1))
  const invalid = variables.find(({ key }) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(key))
  // It could inject another line into the file.
  if (invalid) throw new InvalidResponse(`The server sent an invalid variable name: ${JSON.stringify(invalid.key)}.`)
  // Includes broken links.
  const existing = await lstat(file).catch(() => null)
  if (existing !== null && !(existing.isFile() || (existing.isSymbolicLink() && !(await isDeviceLink(file)))))
    throw usage(`${file} is not a regular file.`, 'Name a file, or print the variables with `berth env ls --json`.')
  if (existing !== null) await confirm(`Replace ${file}?`, context.options.yes, context.signal)
  await replaceFile(
    file,
    fromServer(() => fileOf(variables)),
  )
  const secret = variables.filter(({ value }) => value === null)
  context.out.say(`Wrote ${count(variables.length - secret.length, 'variable')} to ${file}.`)
  if (secret.length > 0) {
    const names = secret.map(({ key }) => clean(key)).join(', ')
    context.out.say(`Left out ${count(secret.length, 'secret value')}: ${names}`)
  }
  context.out.show(variables, () => '')
}

/** Such as /dev/stdout: root would replace the system's link. */
async function isDeviceLink(file: string): Promise<boolean> {
  return /^\/(dev|proc)\//.test(`${await realpath(dirname(file))}/`)
}

/** Renames a new file over the path, which replaces a link instead of following it and resets a wider mode. */
async function replaceFile(file: string, content: string): Promise<void> {
  const draft = `${file}.${randomUUID()}`
  try {
    await writeFile(draft, content, { mode: 0o600, flag: 'wx' })
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

/** Readable variables, followed by the names of secret ones as comments. */
function fileOf(variables: Variable[]): string {
  const lines = variables.flatMap(({ key, value }) => (value === null ? [] : [`${key}=${quote(value)}`]))
  const secret = variables.filter(({ value }) => value === null)
  if (secret.length > 0) {
    lines.push(`# Secret, values not included (${secret.length}):`)
    lines.push(...secret.map(({ key }) => `# ${key}=`))
  }
  return lines.map((line) => `${line}\n`).join('')
}

function quote(value: string): string {
  return /^[\w./:@%+,-]*$/.test(value) ? value : JSON.stringify(value).replaceAll('$', '\\$')
}
