// Works out how to build and serve a repository from its files. The project's settings take precedence.
import type { Build } from '../../../services/deployments/index.ts'
import type { Adapter, Facts, Plan } from '../project/adapter.ts'
import { plainFolder, withoutComments } from '../project/config-text.ts'
import { lockfileWarnings } from '../project/lockfile.ts'
import { findManager } from '../project/manager.ts'
import { maxManifestLength, type PackageManifest, readManifest } from '../project/manifest.ts'
import { readNodeRequirements } from '../project/node-requirements.ts'
import { chooseNode } from '../project/node-version.ts'
import { type Candidate, outputsOf } from '../project/output.ts'
import { reasonOf, singlePageOf } from '../project/single-page.ts'
import { scriptCommandOf } from '../project/toolchain.ts'
import type { Detected } from '../project/types.ts'
import type { Warning } from '../project/warning.ts'
import type { Source } from '../tree/source-tree.ts'
import { adapters } from './adapters/index.ts'
import { usualFiles } from './adapters/node.ts'
import { findApps } from './apps.ts'

export type Settings = Pick<Build, 'framework' | 'buildCommand' | 'outputDirectory'>

export type Detection = {
  detected: Detected
  /** The framework's display name. */
  title: string
  /** Candidate folders for the output; the first match wins. */
  outputs: Candidate[]
  /** A program that must be installed on the machine. */
  tool: string | null
  /** See `Plan`. */
  selfContained: boolean
  hint: string | null
  warnings: Warning[]
}

const maxConfigLength = 1 << 16
const maxVersionLength = 1_000
const unreadHint = 'package.json was not read; see the warning.'
// Other places for a site without a build.
const usualSites = ['public', 'dist', 'site', 'www', 'docs', 'src']

/** `root` is the root directory: empty, or with a trailing slash. */
export async function detect(source: Source, root: string, settings: Settings): Promise<Detection> {
  const hasManifest = source.entries.has(`${root}package.json`)
  const text = await source.text(`${root}package.json`, maxManifestLength)
  // A file that is too large counts as unreadable.
  const manifest = await readManifest(hasManifest ? (text ?? '') : null)
  const packages = hasManifest
    ? await findManager(source, root, manifest)
    : { manager: null, because: [], warnings: [] }
  const facts: Facts = {
    manifest,
    hasManifest,
    manager: packages.manager,
    buildText: settings.buildCommand ?? manifest.scripts.get('build') ?? '',
    listener: await listenerOf(source, root, manifest),
    has: (path) => source.entries.has(root + path),
    hasFolder: foldersOf(source, root),
  }
  const adapter = chooseAdapter(facts, settings)
  const plan = adapter ? await adapter.plan(facts, await configOf(source, root, adapter)) : null
  const script = manifest.scripts.has('build') ? scriptCommandOf(packages.manager, 'build') : null
  const buildCommand = settings.buildCommand ?? plan?.build ?? script ?? adapter?.build ?? null
  const isServer = plan?.kind === 'server' && (settings.outputDirectory === null || settings.framework === 'node')
  const outputs = isServer ? wholeTree : candidatesOf(facts, settings, plan, buildCommand !== null)
  const node = chooseNode(
    [
      { file: '.nvmrc', text: await source.text(`${root}.nvmrc`, maxVersionLength) },
      { file: '.node-version', text: await source.text(`${root}.node-version`, maxVersionLength) },
      { file: 'engines of package.json', text: manifest.node },
    ],
    undefined,
    await readNodeRequirements(source, packages.manager, manifest),
  )
  const because = [
    ...reasonsOf(facts, settings, adapter),
    ...(isServer || settings.outputDirectory === null ? (plan?.because ?? []) : []),
  ]
  const { framework } = settings
  const singlePage = isServer
    ? undefined
    : plan
      ? plan.singlePage
      : singlePageWithoutPlan(facts, settings, buildCommand)
  return {
    detected: {
      framework: adapter?.name ?? (framework !== 'auto' ? framework : buildCommand !== null ? 'other' : 'static'),
      packageManager: packages.manager,
      node: node.node,
      buildCommand,
      output: outputs[0]!.path,
      kind: isServer ? 'server' : 'files',
      startCommand: isServer ? (plan.start ?? 'npm start') : null,
      spaFallback: singlePage !== undefined,
      because: [...because, ...packages.because, ...node.because, ...(singlePage ? [singlePage] : [])],
    },
    title: adapter?.title ?? 'no framework',
    outputs,
    selfContained: isServer && (plan.selfContained ?? false),
    hint: plan?.hint ?? (manifest.unreadable ? unreadHint : null),
    tool: settings.buildCommand === null && script === null ? (adapter?.tool ?? null) : null,
    warnings: [
      ...ignoredFiles(source, root, manifest),
      ...packages.warnings,
      ...node.warnings,
      ...(await lockfileWarnings(source, packages.manager, root, manifest)),
    ],
  }
}

/** For projects without a detected framework: by the setting, or by a router among the dependencies. */
function singlePageWithoutPlan({ manifest }: Facts, { framework }: Settings, buildCommand: string | null) {
  if (['react', 'vue', 'svelte', 'angular'].includes(framework)) return reasonOf(framework)
  return buildCommand !== null && framework !== 'static' ? singlePageOf(manifest, { byRouter: true }) : undefined
}

/** Warnings for files that should affect the build but don't, for reasons that are easy to miss. */
function ignoredFiles(source: Source, root: string, { unreadable }: PackageManifest): Warning[] {
  const containers = ['Dockerfile', 'Containerfile'].filter((name) => source.entries.has(root + name))
  const unused = containers.map((name): Warning => {
    const message = 'It is not used: we build from package.json and the project settings, not from a Dockerfile.'
    return { code: 'file_ignored', message, file: root + name }
  })
  const limits: [name: string, most: number, otherwise: string | null][] = [
    ['package.json', maxManifestLength, unreadable ? 'is not a JSON object' : null],
    ['.nvmrc', maxVersionLength, null],
    ['.node-version', maxVersionLength, null],
  ]
  const unread = limits.flatMap(([name, most, otherwise]): Warning[] => {
    const entry = source.entries.get(root + name)
    if (!entry) return []
    const large = entry.size > most ? `is larger than ${most} bytes` : otherwise
    const why = entry.kind === 'link' ? 'is a symbolic link' : large
    return why === null ? [] : [{ code: 'file_ignored', message: `It ${why}, so it was not read.`, file: root + name }]
  })
  return [...unused, ...unread]
}

/** Folders that look like separate projects. */
export const findProjects = (source: Source, root: string): Promise<string[]> =>
  findApps(source, root, (facts) => adapters.find((adapter) => isDetected(adapter, facts))?.title ?? null)

const wholeTree: Candidate[] = [{ path: '.', needsIndex: false }]

/** Null: only scripts and files decide. */
function chooseAdapter(facts: Facts, { framework }: Settings): Adapter | null {
  if (framework === 'auto') return adapters.find((adapter) => isDetected(adapter, facts)) ?? null
  const named = adapters.filter(({ name }) => name === framework)
  // A server or a program needs no evidence if the owner names it.
  const certain = named.find(({ packages }) => packages === undefined)
  return certain ?? adaptersFor(framework).find((adapter) => isDetected(adapter, facts)) ?? null
}

/** Some names stand for several adapters: a React project is built by Vite or by react-scripts. */
function adaptersFor(framework: string): Adapter[] {
  const also: Record<string, string> = { react: 'vite', vue: 'vite', svelte: 'vite', remix: 'react-router' }
  return adapters.filter(({ name }) => name === framework || name === also[framework])
}

function isDetected({ packages, files, matches: suits }: Adapter, facts: Facts): boolean {
  const byPackage = packages?.some((name) => facts.manifest.dependencies.has(name))
  const byFile = files?.some(facts.has)
  if ((packages || files) && !byPackage && !byFile) return false
  return suits?.(facts) ?? true
}

function reasonsOf({ manifest, has }: Facts, settings: Settings, adapter: Adapter | null): string[] {
  const { framework, buildCommand, outputDirectory } = settings
  const name = adapter?.packages?.find((name) => manifest.dependencies.has(name))
  const file = adapter?.files?.find(has)
  const seen = name ? [`package.json depends on ${name}.`] : file ? [`There is ${file}.`] : []
  return [
    ...(framework === 'auto' ? seen : [`The framework of the project is set to ${framework}.`]),
    ...(buildCommand === null ? [] : ['buildCommand of the project is set.']),
    ...(outputDirectory === null ? [] : ['outputDirectory of the project is set.']),
  ]
}

function candidatesOf(facts: Facts, settings: Settings, plan: Plan | null, isBuilt: boolean): Candidate[] {
  if (plan && settings.outputDirectory === null) {
    const isPage = plan.hint !== undefined
    const own = [...new Set(plan.outputs)].map((path, index) => ({ path, needsIndex: isPage || index > 0 }))
    const others = outputsOf(settings, isBuilt).filter(({ path }) => !plan.outputs.includes(path))
    return settings.framework === 'auto' ? own : [...own, ...others.map(({ path }) => ({ path, needsIndex: true }))]
  }
  const usual = outputsOf(settings, isBuilt)
  if (settings.framework !== 'auto' || isBuilt || settings.outputDirectory !== null || facts.has('index.html'))
    return usual
  const folder = usualSites.find((name) => facts.has(`${name}/index.html`))
  return folder === undefined ? usual : [{ path: folder, needsIndex: true }]
}

/** Only the first existing file counts, because only that one would be started. */
async function listenerOf(source: Source, root: string, { main }: PackageManifest): Promise<string | null> {
  const names = [main, ...usualFiles].flatMap((name) => (name && plainFolder(name)) ?? [])
  const name = names.find((name) => source.entries.has(root + name))
  const text = name === undefined ? null : await source.text(root + name, maxConfigLength)
  return text !== null && /\.listen\s{0,20}\(/.test(withoutComments(text)) ? name! : null
}

async function configOf(source: Source, root: string, { configs = [] }: Adapter): Promise<string> {
  for (const name of configs) {
    const text = await source.text(root + name, maxConfigLength)
    if (text !== null) return name.endsWith('.json') ? text : withoutComments(text)
  }
  return ''
}

/** Collects the folder names on first use. */
function foldersOf({ entries }: Source, root: string): (name: string) => boolean {
  let names: Set<string> | null = null
  return (name) => {
    if (!names) {
      names = new Set()
      for (const path of entries.keys()) {
        const end = path.startsWith(root) ? path.indexOf('/', root.length) : -1
        if (end > 0) names.add(path.slice(root.length, end))
      }
    }
    return names.has(name)
  }
}
