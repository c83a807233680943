// The console, built once for each state of its source, however many files of tests want it.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'

const builds = resolve('node_modules/.cache/berth-console')
const dayMs = 86_400_000

/** The directory that it is in. */
export async function buildConsole(): Promise<string> {
  const directory = join(builds, await stateOfSource())
  if (existsSync(directory)) return directory
  await mkdir(builds, { recursive: true })
  await removeOld()
  // Named when it is whole: another process may build it at the same time.
  const unnamed = await mkdtemp(join(builds, 'new-'))
  execFileSync(process.execPath, ['node_modules/tsx/dist/cli.mjs', 'dashboard/build.ts', unnamed], { stdio: 'inherit' })
  await rename(unnamed, directory).catch(() => rm(unnamed, { recursive: true, force: true }))
  return directory
}

async function stateOfSource(): Promise<string> {
  const hash = createHash('sha1')
  const found = await Promise.all(
    ['dashboard', 'sdk/src'].map(async (root) =>
      (await readdir(root, { recursive: true, withFileTypes: true }))
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => join(parentPath, name)),
    ),
  )
  for (const path of [...found.flat().sort(), 'package-lock.json']) hash.update(path).update(await readFile(path))
  return hash.digest('hex')
}

async function removeOld(): Promise<void> {
  for (const name of await readdir(builds)) {
    const path = join(builds, name)
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }))
    if (mtimeMs < Date.now() - dayMs) await rm(path, { recursive: true, force: true })
  }
}
