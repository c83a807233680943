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
import { askUnseen, canAsk, confirm, readStdin } from '../kit/prompt.ts'
import { fromServer } from '../kit/shape.ts'
import { clean, count, time } from '../kit/text.ts'

type Variable = Schemas['Variable']
type OfProject = { project?: string }

async function read(context: Context, given: string | undefined): Promise<Variable[]> {
  const path = { project: await requireProject(context, given) }
  const found = await (await context.berth()).get('/projects/{project}/env', { params: { path } })
  return fromServer(() => found.env.map((it) => ({ ...it })))
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

type Set = OfProject & { target: string; secret?: boolean; readable?: boolean }

export const set: Action<Set> = async (context, [key, given], options) => {
  const { target, secret, readable } = options
  if (secret && readable) throw usage('Give --secret or --readable, not both.')
  const project = await requireProject(context, options.project)
  const isSecret = secret ?? (readable ? false : await hasSecret(context, project, key!))
  const value = given ?? (await readValue(context, key!))
  const init = { params: { path: { project, key: key! } }, body: { value, target, readable: !isSecret } } as never
  const kept: Variable = await (await context.berth()).put('/projects/{project}/env/{key}', init)
  const deployments = target === 'all' ? 'all deployments' : `${target} deployments`
  context.out.say(`Set ${key} of ${project} for ${deployments}. It applies from the next deployment.`)
  context.out.say(
    isSecret
      ? 'It is secret: nobody can read its value again.'
      : 'Members and tokens that can read the project can read its value. Use --secret to withhold it.',
  )
  context.out.show(kept, () => '')
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
  return canAsk() ? askUnseen(`Value of ${key}:`, 'a value', signal) : (await readStdin()).replace(/\r?\n$/, '')
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
  // A value for the target overrides the one for all.
  const values = new Map<string, Variable>()
  for (const target of ['all', options.target]) for (const it of found) if (it.target === target) values.set(it.key, it)
  const wanted = [...values.values()].sort((one, other) => (one.key < other.key ? -1 : 1))
  const wrong = wanted.find(({ key }) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(key))
  // It could become a line of its own.
  if (wrong) throw new InvalidResponse(`The server sent ${JSON.stringify(wrong.key)}, which is no name of a variable.`)
  // A link counts too, even if it leads nowhere.
  const before = await lstat(file).catch(() => null)
  if (before !== null && !(before.isFile() || (before.isSymbolicLink() && !(await isDeviceLink(file)))))
    throw usage(`${file} is not a regular file.`, 'Name a file, or print the variables with `berth env ls --json`.')
  if (before !== null) await confirm(`Replace ${file}?`, context.options.yes, context.signal)
  await replaceFile(
    file,
    fromServer(() => fileOf(wanted)),
  )
  const secret = wanted.filter(({ value }) => value === null)
  context.out.say(`Wrote ${count(wanted.length - secret.length, 'variable')} to ${file}.`)
  if (secret.length > 0) {
    const names = secret.map(({ key }) => clean(key)).join(', ')
    context.out.say(`Withheld ${count(secret.length, 'secret variable')}: ${names}`)
  }
  context.out.show(wanted, () => '')
}

/** Such as /dev/stdout: root would replace the link of the whole machine. */
async function isDeviceLink(file: string): Promise<boolean> {
  return /^\/(dev|proc)\//.test(`${await realpath(dirname(file))}/`)
}

/** Renames a new file over the path: a link there is replaced instead of followed, and no file keeps a wider mode. */
async function replaceFile(file: string, content: string): Promise<void> {
  const unnamed = `${file}.${randomUUID()}`
  try {
    await writeFile(unnamed, content, { mode: 0o600, flag: 'wx' })
    await rename(unnamed, file)
  } catch (error) {
    await rm(unnamed, { force: true })
    throw error
  }
}

/** Readable variables; below them, as comments, the names of those that are withheld. */
function fileOf(wanted: Variable[]): string {
  const lines = wanted.flatMap(({ key, value }) => (value === null ? [] : [`${key}=${quoted(value)}`]))
  const secret = wanted.filter(({ value }) => value === null)
  if (secret.length > 0) {
    lines.push(`# Withheld, because their values are secret (${secret.length}):`)
    lines.push(...secret.map(({ key }) => `# ${key}=`))
  }
  return lines.map((line) => `${line}\n`).join('')
}

function quoted(value: string): string {
  return /^[\w./:@%+,-]*$/.test(value) ? value : JSON.stringify(value).replaceAll('$', '\\$')
}
