// The project that `berth deploy` creates for a folder that has none.
import { readFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { InvalidResponse } from '../../../sdk/src/errors.ts'
import type { Context } from './context.ts'
import { exitCodes, Failure, usage } from './failures.ts'
import { linkFile, writeLink } from './project.ts'
import { ask, canAsk } from './prompt.ts'
import { clean } from './text.ts'
import { Refused } from './wire.ts'

export type NewProject = {
  name: string
  /** Deletes it again, because nothing was deployed to it. */
  remove(): Promise<void>
  /** Links the folder to it; from then on it stays. */
  keep(): Promise<void>
}

/** The name in package.json, or that of the folder, as the API takes names. */
export async function nameOf(directory: string): Promise<string> {
  const text = await readFile(join(directory, 'package.json'), 'utf8').catch(() => '{}')
  let name: unknown
  try {
    name = JSON.parse(text)?.name
  } catch {}
  const packageName = typeof name === 'string' ? validName(name.replace(/^@[^/]*\//, '')) : ''
  return packageName || validName(basename(resolve(directory))) || 'site'
}

function validName(text: string): string {
  const plain = text.slice(0, 200).normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
  const dashed = plain.replace(/[^a-z0-9]+/g, '-').replace(/^-/, '')
  return dashed.slice(0, 40).replace(/-$/, '')
}

/** Throws if a project would have to be created and nobody has agreed or can be asked. */
export async function requireConsent({ options }: Context, directory: string): Promise<void> {
  if (options.yes || canAsk()) return
  const name = await nameOf(directory)
  throw usage(
    'This folder has no project.',
    `Add --yes to create ${name}, or --project <name> to deploy to an existing project.`,
  )
}

export async function createProject(context: Context, directory: string): Promise<NewProject> {
  const { options, out, signal } = context
  let name = await nameOf(directory)
  if (!options.yes) {
    const answer = await ask(`Create project ${name}? [Y/n]`, '--yes', signal)
    if (!/^(y(es)?)?$/i.test(answer)) {
      throw usage('Nothing was created.', 'Run `berth link <project>` to deploy this folder to an existing project.')
    }
  }
  for (;;) {
    try {
      return await create(context, directory, name)
    } catch (error) {
      const why = refusedName(error)
      if (why === null) throw error
      if (options.yes || !canAsk()) {
        const existing = `Run \`berth deploy --project ${name}\` to deploy to it`
        throw new Failure(exitCodes.invalid, why, `${existing}, or \`berth projects create <name>\` to choose a name.`)
      }
      out.say(clean(why))
      name = await ask('Name of the new project:', '--project <name>', signal)
    }
  }
}

/** Why the API refuses a name; null for any other error. */
function refusedName(error: unknown): string | null {
  if (!(error instanceof Refused)) return null
  const { code, detail, errors } = (error.problem ?? {}) as { code?: string; detail?: string; errors?: unknown }
  const isOfName = Array.isArray(errors) && errors.some((one) => one?.pointer === '#/name')
  return code === 'project_exists' || isOfName ? (detail ?? null) : null
}

async function create(context: Context, directory: string, wanted: string): Promise<NewProject> {
  const { out, undo, send } = context
  // Ctrl-C doesn't abort it: without the response, nobody could delete what it created.
  const { signal } = new AbortController()
  const creating = send('POST', '/api/projects', { body: { name: wanted }, signal })
  const remove = async () => {
    const made = await creating.catch(() => null)
    if (!made) return
    undo.delete(remove)
    const { name } = await made.json()
    const path = `/api/projects/${encodeURIComponent(name)}`
    const gone = await send('DELETE', path, { any: true, signal: AbortSignal.timeout(3_000) }).catch(() => null)
    if (gone?.ok) return out.say(`Deleted project ${clean(name)} again: nothing was deployed.`)
    out.say(`Nothing was deployed to ${clean(name)}. Run \`berth projects rm ${clean(name)}\` to delete it.`)
  }
  undo.add(remove)
  try {
    const { name } = await (await creating).json()
    if (typeof name !== 'string') throw new InvalidResponse('The server sent a malformed response.')
    context.signal.throwIfAborted()
    out.say(`Created project ${clean(name)}.`)
    return {
      name,
      remove,
      async keep() {
        undo.delete(remove)
        await writeLink(directory, name)
        out.say(`Linked the folder to ${clean(name)} (${clean(join(directory, linkFile))}).`)
      },
    }
  } catch (error) {
    if (!context.signal.aborted) undo.delete(remove)
    throw error
  }
}
