// Which project a folder belongs to: .berth/project.json in it, or in a folder above.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Action } from '../kit/action.ts'
import type { Context } from '../kit/context.ts'
import { usage } from '../kit/failures.ts'
import { ask } from '../kit/prompt.ts'
import { clean } from '../kit/text.ts'

const linkFile = '.berth/project.json'

async function readLink(directory: string): Promise<string | null> {
  for (let at = resolve(directory); ; at = dirname(at)) {
    const text = await readFile(join(at, linkFile), 'utf8').catch(() => null)
    if (text !== null) return nameIn(text, join(at, linkFile))
    if (dirname(at) === at) return null
  }
}

function nameIn(text: string, file: string): string {
  try {
    const { project } = JSON.parse(text)
    if (typeof project === 'string' && project !== '') return project
  } catch {}
  throw usage(`${file} does not name a project.`, 'Write it anew by `berth link <project>`.')
}

/** The project of the option, of the environment, or of the folder. */
export async function findProject(
  { env }: Context,
  given: string | undefined,
  directory = '.',
): Promise<string | null> {
  return given ?? (env.BERTH_PROJECT || (await readLink(directory)))
}

export async function requireProject(context: Context, given: string | undefined, directory = '.'): Promise<string> {
  const found = await findProject(context, given, directory)
  if (!found)
    throw usage('No project is named.', 'Give --project <name>, or link the folder by `berth link <project>`.')
  return found
}

/** A list that is empty because there is no such project is an error, and not a list. */
export async function expectProject(context: Context, project: string | null, found: unknown[]): Promise<void> {
  if (project === null || found.length > 0) return
  await (await context.berth()).get('/projects/{project}', { params: { path: { project } } })
}

export const link: Action = async (context, [given]) => {
  const { out, signal } = context
  const berth = await context.berth()
  const project = given ?? (await ask('Which project?', 'its name', signal))
  const found = await berth.get('/projects/{project}', { params: { path: { project } } })
  await mkdir(dirname(linkFile), { recursive: true })
  await writeFile(linkFile, `${JSON.stringify({ project: found.name })}\n`)
  out.say(`Linked to ${clean(found.name)} (${linkFile}).`)
  out.show(found, () => '')
}
