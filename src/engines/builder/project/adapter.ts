// The shape of an adapter: how a framework is recognised, built and served.
import type { frameworks } from '../../../schemas/projects.ts'
import type { PackageManifest } from './manifest.ts'
import type { PackageManager } from './types.ts'

/** What an adapter may look at. Paths are relative to the root directory. */
export type Facts = {
  manifest: PackageManifest
  hasManifest: boolean
  manager: PackageManager | null
  /** What builds the project, as its owner wrote it: the setting, else the script; empty if there is neither. */
  buildText: string
  /** The first of `main` and the usual names that is there and listens for connections, by its text. */
  listener: string | null
  has(path: string): boolean
  /** Whether there is a folder of this name in the root directory. */
  hasFolder(name: string): boolean
}

export type Plan = {
  kind: 'files' | 'server'
  /** Folders to look for the output in: the first one as it is, the others if they have an index page. */
  outputs: string[]
  /** Instead of the build script. */
  build?: string
  /** Instead of `npm start`. */
  start?: string
  /** The build has copied all modules that the server needs: the project's own are not published. */
  selfContained?: boolean
  /** What is missing in the project where the first output has no index page; it then needs one. */
  hint?: string
  because: string[]
  /** Why one page answers all paths that have no file, in a sentence; nothing if each page is a file. */
  singlePage?: string | undefined
}

export type Adapter = {
  /** As `framework` of a project names it. */
  name: (typeof frameworks)[number]
  title: string
  /** Any of these dependencies shows that the framework is used. */
  packages?: readonly string[]
  /** Without such a dependency, any of these files does. */
  files?: readonly string[]
  /** What else must hold. */
  suits?(facts: Facts): boolean
  /** Configuration files: the text of the first one that is there is given to `plan`, without comments. */
  configs?: readonly string[]
  /** Where there is no build script; null: nothing is built. */
  build: string | null
  /** A program of the machine that the build needs. */
  tool?: string
  plan(facts: Facts, config: string): Plan | Promise<Plan>
}

export const files = (outputs: string[], ...because: string[]): Plan => ({ kind: 'files', outputs, because })

export const server = (start: string, ...because: string[]): Plan => ({
  kind: 'server',
  outputs: ['.'],
  start,
  because,
})

/** All names of a configuration file. */
export const configFiles = (stem: string): string[] =>
  ['.js', '.mjs', '.cjs', '.ts', '.mts', '.cts'].map((ending) => stem + ending)

/** The project's own start script if it has one that runs the program, else the command. */
export function startOf({ manifest }: Facts, program: string, command: string): string {
  return manifest.scripts.get('start')?.includes(program) ? 'npm start' : command
}
