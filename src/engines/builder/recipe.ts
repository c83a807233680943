// How a commit is built: from the project's settings, else from its lockfile, scripts and framework.
import { createHash } from 'node:crypto'
import type { Build } from '../../services/deployments/builds.ts'
import { type Candidate, outputsOf } from './output.ts'
import type { Source } from './source-tree.ts'

export type Recipe = {
  /** Null: nothing to install. */
  install: string | null
  /** Null: nothing to build, the files are served as they are. */
  build: string | null
  /** Directories to look for the output in, first match wins; relative to the root directory. */
  outputs: Candidate[]
  /** Cached dependencies are valid only for the same key; null without a lockfile. */
  dependenciesKey: string | null
  /** Started with `npm start` instead of being served from files. */
  server: boolean
}

/** Untrusted: no field is sure to have its proper type. */
type PackageJson = { scripts?: { build?: unknown }; dependencies?: unknown; devDependencies?: unknown }

const lockfiles = {
  'pnpm-lock.yaml': 'npx --yes pnpm@10 install --frozen-lockfile',
  'yarn.lock': 'npx --yes yarn@1 install --frozen-lockfile --non-interactive',
  // Not `npm ci`, which refuses lockfiles written on a machine that lacked the packages of another platform.
  'package-lock.json': 'npm install --no-audit --no-fund',
  'npm-shrinkwrap.json': 'npm install --no-audit --no-fund',
} as const

const longestManifest = 1 << 20

/** `root` is the root directory, empty or with a slash at its end. */
export async function readRecipe(source: Source, root: string, build: Build): Promise<Recipe> {
  const text = await source.text(`${root}package.json`, longestManifest)
  const manifest = text === null ? null : parseManifest(text)
  const lockfile = manifest && lockfileOf(source, root)
  const hasDependencies = [manifest?.dependencies, manifest?.devDependencies].some(isFilled)
  const install = lockfile ? lockfile.command : hasDependencies ? 'npm install --no-audit --no-fund' : null
  const script = manifest?.scripts?.build ? 'npm run build' : null
  const buildCommand = build.buildCommand ?? script ?? (build.framework === 'hugo' ? 'hugo' : null)
  const installCommand = build.installCommand ?? install
  const server = build.framework === 'node'
  return {
    install: installCommand,
    build: buildCommand,
    outputs: server ? [{ path: '.', needsIndex: false }] : outputsOf(build, buildCommand !== null),
    dependenciesKey: lockfile && installCommand ? keyOf(lockfile.hash, installCommand) : null,
    server,
  }
}

function isFilled(dependencies: unknown): boolean {
  if (dependencies === null || typeof dependencies !== 'object') return false
  for (const _ in dependencies) return true
  return false
}

function parseManifest(text: string): PackageJson {
  try {
    const parsed: unknown = JSON.parse(text)
    return parsed !== null && typeof parsed === 'object' ? (parsed as PackageJson) : {}
  } catch {
    // npm will report the error in the log.
    return { dependencies: { unreadable: '*' } }
  }
}

function lockfileOf(source: Source, root: string): { command: string; hash: string } | null {
  for (const [name, command] of Object.entries(lockfiles)) {
    const entry = source.entries.get(root + name)
    if (entry) return { command, hash: entry.hash }
  }
  return null
}

/** The lockfile's git hash stands for its content. */
function keyOf(lockfileHash: string, command: string): string {
  return createHash('sha256').update(`${process.version} ${process.arch} ${command}\n${lockfileHash}`).digest('hex')
}
