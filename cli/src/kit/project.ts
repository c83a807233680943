// Finds the project a command acts on: --project, BERTH_PROJECT, or .berth/project.json in the folder or a parent.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Context } from './context.ts'
import { usage } from './failures.ts'

export const linkFile = '.berth/project.json'

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
  throw usage(`${file} does not name a project.`, 'Run `berth link <project>` to write it again.')
}

export async function writeLink(directory: string, project: string): Promise<void> {
  const file = join(directory, linkFile)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, `${JSON.stringify({ project })}\n`)
}

export async function findProject(
  { env }: Context,
  given: string | undefined,
  directory = '.',
): Promise<string | null> {
  return given ?? (env.BERTH_PROJECT || (await readLink(directory)))
}

export async function requireProject(context: Context, given: string | undefined, directory = '.'): Promise<string> {
  const found = await findProject(context, given, directory)
  if (!found) {
    throw usage('No project was given.', 'Add --project <name>, or run `berth link <project>` to link this folder.')
  }
  return found
}

/** Throws if a list is empty because its project doesn't exist. */
export async function checkProjectIfEmpty(context: Context, project: string | null, found: unknown[]): Promise<void> {
  if (project === null || found.length > 0) return
  await (await context.berth()).get('/projects/{project}', { params: { path: { project } } })
}
