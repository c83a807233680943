// The interface of an adapter: how a framework is detected, built and served.
import type { frameworks } from '../../../schemas/projects.ts'
import type { PackageManifest } from './manifest.ts'
import type { PackageManager } from './types.ts'

/** What adapters can see. Paths are relative to the root directory. */
export type Facts = {
  manifest: PackageManifest
  hasManifest: boolean
  manager: PackageManager | null
  /** The build command from the setting, else the build script; empty if there is neither. */
  buildText: string
  /** The main file, if its source listens for connections. */
  listener: string | null
  has(path: string): boolean
  /** Whether the root directory has this folder. */
  hasFolder(name: string): boolean
}

export type Plan = {
  kind: 'files' | 'server'
  /** Candidate folders for the output. All but the first need an index page. */
  outputs: string[]
  /** Replaces the build script. */
  build?: string
  /** Replaces `npm start`. */
  start?: string
  /** Whether the build copies all modules that the server needs, so that node_modules isn't published. */
  selfContained?: boolean
  /** What the project lacks if the first output has no index page, which this makes mandatory. */
  hint?: string
  because: string[]
  /** Why unknown paths get the index page, as a sentence; undefined if each page is a file. */
  singlePage?: string | undefined
}

export type Adapter = {
  /** The value of the project's `framework` setting. */
  name: (typeof frameworks)[number]
  title: string
  /** Any of these dependencies indicates the framework. */
  packages?: readonly string[]
  /** Any of these files does too. */
  files?: readonly string[]
  /** A further condition. */
  matches?(facts: Facts): boolean
  /** Configuration files. `plan` gets the first existing one, without comments. */
  configs?: readonly string[]
  /** The build command if there is no build script; null: nothing to build. */
  build: string | null
  /** A program that must be installed on the machine. */
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

/** All variants of a configuration file's name. */
export const configFiles = (stem: string): string[] =>
  ['.js', '.mjs', '.cjs', '.ts', '.mts', '.cts'].map((ending) => stem + ending)

/** `npm start` if that runs the program, else the command. */
export function startOf({ manifest }: Facts, program: string, command: string): string {
  return manifest.scripts.get('start')?.includes(program) ? 'npm start' : command
}
