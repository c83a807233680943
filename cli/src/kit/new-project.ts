// Creates a project for a folder without one, for `berth deploy`.
import { readFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { InvalidResponse } from '../../../sdk/src/errors.ts'
import type { Context } from './context.ts'
import { exitCodes, Failure, usage } from './failures.ts'
import { linkFile, writeLink } from './project.ts'
import { ask, canAsk } from './prompt.ts'
import { clean } from './text.ts'
import { ErrorResponse } from './wire.ts'

export type NewProject = {
  name: string
  /** Deletes it, if nothing was deployed to it. */
  remove(): Promise<void>
  /** Links the folder to it and keeps it. */
  link(): Promise<void>
}

/** A valid project name from package.json or the folder. */
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

/** Throws without --yes if we can't ask whether to create a project. */
export async function requireConsent({ options }: Context, directory: string): Promise<void> {
  if (options.yes || canAsk()) return
  const name = await nameOf(directory)
  throw usage(
    'This folder is not linked to a project.',
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
      const message = nameError(error)
      if (message === null) throw error
      if (options.yes || !canAsk()) {
        const existing = `Run \`berth deploy --project ${name}\` to deploy to it`
        throw new Failure(
          exitCodes.invalid,
          message,
          `${existing}, or \`berth projects create <name>\` to choose a name.`,
        )
      }
      out.say(clean(message))
      name = await ask('Name of the new project:', '--project <name>', signal)
    }
  }
}

/** The API's message about the name; null for other errors. */
function nameError(error: unknown): string | null {
  if (!(error instanceof ErrorResponse)) return null
  const { code, detail, errors } = (error.problem ?? {}) as { code?: string; detail?: string; errors?: unknown }
  const concernsName = Array.isArray(errors) && errors.some((one) => one?.pointer === '#/name')
  return code === 'project_exists' || concernsName ? (detail ?? null) : null
}

async function create(context: Context, directory: string, requestedName: string): Promise<NewProject> {
  const { out, undo, send } = context
  // Ctrl-C doesn't abort the request, because we need its response to delete the project.
  const { signal } = new AbortController()
  const creating = send('POST', '/api/projects', { body: { name: requestedName }, signal })
  const remove = async () => {
    const created = await creating.catch(() => null)
    if (!created) return
    undo.delete(remove)
    const { name } = await created.json()
    const path = `/api/projects/${encodeURIComponent(name)}`
    const deleted = await send('DELETE', path, { any: true, signal: AbortSignal.timeout(3_000) }).catch(() => null)
    if (deleted?.ok) return out.say(`Deleted project ${clean(name)}, because nothing was deployed to it.`)
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
      async link() {
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
