// Finds the directory to publish, and explains if there is none.
import { posix } from 'node:path'
import type { Build } from '../../../services/deployments/index.ts'
import { BuildFailure } from '../explain/failure.ts'
import { printable } from '../tree/entries.ts'
import type { PackerPlan } from '../tree/packer.ts'

export type Candidate = PackerPlan['candidates'][number]

// The default output directory of each framework.
const frameworkOutputs: Partial<Record<Build['framework'], string[]>> = {
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
  'react-router': ['build/client'],
  angular: ['dist'],
  vitepress: ['.vitepress/dist', 'docs/.vitepress/dist'],
  parcel: ['dist'],
  jekyll: ['_site'],
  solidstart: ['.output/public'],
  'tanstack-start': ['dist/client'],
  qwik: ['dist'],
  nitro: ['.output/public'],
}

// The usual names without a known framework. Those that may contain sources need an index page.
const usualOutputs = [
  { path: 'dist', needsIndex: false },
  { path: 'build', needsIndex: true },
  { path: 'out', needsIndex: false },
  { path: '_site', needsIndex: false },
  { path: 'public', needsIndex: true },
]

/** Normalizes a directory from the settings: `./dist/` becomes `dist`; `.` stays. */
export const plainDirectory = (path: string) => posix.normalize(path).replace(/(?<=.)\/$/, '')

/** Never the whole tree after a build, because that includes the sources. */
export function outputsOf(build: Pick<Build, 'framework' | 'outputDirectory'>, isBuilt: boolean): Candidate[] {
  if (build.outputDirectory !== null) return [{ path: plainDirectory(build.outputDirectory), needsIndex: false }]
  const own = frameworkOutputs[build.framework]
  if (own) return own.map((path, index) => ({ path, needsIndex: index > 0 }))
  if (isBuilt) return usualOutputs
  return [{ path: '.', needsIndex: true }]
}

// Files in the root directory that show that a project isn't a site.
const signs: [file: RegExp, what: string][] = [
  [/^(requirements\.txt|pyproject\.toml|manage\.py|Pipfile|setup\.py)$/, 'a Python project'],
  [/^(Gemfile|config\.ru)$/, 'a Ruby project'],
  [/^(composer\.json|index\.php)$/, 'a PHP project'],
  [/^go\.mod$/, 'a Go project'],
  [/^Cargo\.toml$/, 'a Rust project'],
  [/^(pom\.xml|build\.gradle(\.kts)?)$/, 'a Java project'],
  [/^mix\.exs$/, 'an Elixir project'],
  [/^(.*\.csproj|.*\.sln)$/, 'a .NET project'],
  [/^(Dockerfile|Containerfile|compose\.ya?ml|docker-compose\.ya?ml)$/, 'a container image'],
]

/** Says what was searched, what was found, and which setting helps. */
export function outputMissing(
  candidates: Candidate[],
  /** Names in the root directory, and folders that look like separate projects. */
  seen: { names: string[]; apps: string[] },
  recipe: { build: string | null; hint: string | null },
  build: Pick<Build, 'framework' | 'outputDirectory'>,
): BuildFailure {
  const names = [...new Set(seen.names)]
    .filter((name) => name !== '.git')
    .sort()
    .map(printable)
  const folders = candidates.map(({ path, needsIndex }) => {
    if (path === '.') return 'an index.html at the root'
    return needsIndex ? `${path} with an index.html` : path
  })
  const when = recipe.build ? ` after ${recipe.build}` : ''
  const searched = `Found nothing to publish${when}: looked for ${folders.join(', ')}.`
  const [sign] = names.flatMap((name) => signs.filter(([file]) => file.test(name)).map(([, what]) => ({ name, what })))
  const shown = names.slice(0, 12).join(', ') + (names.length > 12 ? ' and more' : '')
  const seenText = sign
    ? `${sign.name}: ${sign.what}.`
    : names.length > 0
      ? `The folder has ${shown}.`
      : 'The folder is empty.'
  const cure =
    seen.apps.length > 0
      ? `Set rootDirectory to the project to deploy: ${seen.apps.map(printable).join(', ')}.`
      : remedyOf(names, sign !== undefined, recipe, build)
  return new BuildFailure('output_missing', `${searched} ${seenText} ${recipe.hint ?? cure}`)
}

function remedyOf(
  names: string[],
  isForeign: boolean,
  recipe: { build: string | null },
  { framework, outputDirectory }: Pick<Build, 'framework' | 'outputDirectory'>,
): string {
  if (outputDirectory !== null) return 'Set outputDirectory to the folder that the build writes to.'
  const isNode = names.includes('package.json')
  if (!recipe.build && frameworkOutputs[framework] && isNode) {
    return `The framework is ${framework}, but there is no build: add a build script to package.json or set buildCommand.`
  }
  if (!recipe.build && isNode) {
    return 'Set buildCommand and outputDirectory, or, for a server, set framework to node and add a start script.'
  }
  if (isForeign) return 'If it builds a site, set buildCommand and outputDirectory. Servers need the framework node.'
  return recipe.build
    ? 'Set outputDirectory to the folder that the build writes to.'
    : 'Set outputDirectory to the folder with the site, or rootDirectory to the folder with the project.'
}
