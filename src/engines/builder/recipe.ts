// How a tree is built: by the project's settings, else by its lockfile, its scripts and its framework.
import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Build } from '../../services/builds.ts'

export type Recipe = {
  /** Null: nothing to install. */
  install: string | null
  /** Null: nothing to build, the files are served as they are. */
  build: string | null
  /** Directories to look for the output in, first match wins; relative to the root directory. */
  outputs: string[]
  /** A change of it makes cached dependencies useless; null without a lockfile. */
  dependenciesKey: string | null
  /** Started with `npm start` instead of being served from files. */
  server: boolean
}

type PackageJson = { scripts?: Record<string, string>; dependencies?: object; devDependencies?: object }

const lockfiles = {
  'pnpm-lock.yaml': 'npx --yes pnpm@10 install --frozen-lockfile',
  'yarn.lock': 'npx --yes yarn@1 install --frozen-lockfile --non-interactive',
  // Not `npm ci`, which refuses lockfiles that were written where some platform's packages could not be had.
  'package-lock.json': 'npm install --no-audit --no-fund',
  'npm-shrinkwrap.json': 'npm install --no-audit --no-fund',
} as const

const frameworkOutputs: Record<Build['framework'], string[]> = {
  static: ['.'],
  vite: ['dist'],
  react: ['dist', 'build'],
  vue: ['dist'],
  svelte: ['dist', 'public'],
  astro: ['dist'],
  next: ['out'],
  nuxt: ['.output/public', 'dist'],
  sveltekit: ['build'],
  remix: ['build/client', 'public'],
  gatsby: ['public'],
  eleventy: ['_site'],
  hugo: ['public'],
  docusaurus: ['build'],
  node: ['.'],
  other: ['dist', 'build', 'out', '_site', 'public', '.'],
}

export async function readRecipe(root: string, build: Build): Promise<Recipe> {
  const text = await readFile(join(root, 'package.json'), 'utf8').catch(() => null)
  const manifest = text === null ? null : parseManifest(text)
  const lockfile = manifest ? await findLockfile(root) : null
  const scripts = manifest?.scripts ?? {}
  const hasDependencies = Object.keys({ ...manifest?.dependencies, ...manifest?.devDependencies }).length > 0
  const install = lockfile ? lockfiles[lockfile] : hasDependencies ? 'npm install --no-audit --no-fund' : null
  const script = scripts.build ? 'npm run build' : null
  const buildCommand = build.buildCommand ?? script ?? (build.framework === 'hugo' ? 'hugo' : null)
  const installCommand = build.installCommand ?? install
  // A static site that is built puts its pages somewhere else than among its sources.
  const usual = frameworkOutputs[build.framework === 'static' ? 'other' : build.framework]
  const outputs = build.outputDirectory ? [build.outputDirectory] : buildCommand ? usual : ['.']
  return {
    install: installCommand,
    build: buildCommand,
    outputs,
    dependenciesKey: lockfile && installCommand ? await keyOf(join(root, lockfile), installCommand) : null,
    server: build.framework === 'node',
  }
}

function parseManifest(text: string): PackageJson {
  try {
    const parsed: unknown = JSON.parse(text)
    return parsed !== null && typeof parsed === 'object' ? (parsed as PackageJson) : {}
  } catch {
    // npm will say what is wrong with it, in the log.
    return { dependencies: { unreadable: '*' } }
  }
}

async function findLockfile(root: string): Promise<keyof typeof lockfiles | null> {
  for (const name of Object.keys(lockfiles) as (keyof typeof lockfiles)[]) {
    if (await stat(join(root, name)).catch(() => null)) return name
  }
  return null
}

async function keyOf(lockfile: string, command: string): Promise<string> {
  const hash = createHash('sha256').update(`${process.version} ${process.arch} ${command}\n`)
  return hash.update(await readFile(lockfile)).digest('hex')
}
