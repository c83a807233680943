// The last step of a build: publishes its files or its server's tree.
import { appPages, bytesOf, type Manifest, type StoredFile } from '../../../platform/artifacts/artifacts.ts'
import { syncFileSystems } from '../../../platform/files/durable.ts'
import { findProjects } from '../detection/detect.ts'
import type { Recipe } from '../detection/recipe.ts'
import { outputMissing } from '../project/output.ts'
import type { FetchedTools } from '../project/toolchain.ts'
import type { Detected } from '../project/types.ts'
import type { Published, Task } from '../run/task.ts'
import type { Workspace } from '../run/workspace.ts'
import type { Source } from '../tree/source-tree.ts'
import type { Packer } from './pack.ts'
import { checkRules } from './rules.ts'
import { moveTree, readList } from './server-tree.ts'
import { entriesOfSource, neverPublished, outputInSource, siteLimits, storeSite } from './site.ts'
import { createGuard, type Guard } from './withheld.ts'

async function outputMissingIn({ build, prefix }: Task, source: Source, recipe: Recipe, names: string[]) {
  // Suggests other folders only if no setting names what to publish.
  const isOpen = build.framework === 'auto' && build.outputDirectory === null
  const apps = isOpen ? await findProjects(source, prefix) : []
  return outputMissing(recipe.outputs, { names, apps }, recipe, build)
}

export async function publishSource(task: Task, source: Source, recipe: Recipe): Promise<Published> {
  const { prefix, log } = task
  log.step('publish')
  const output = outputInSource(source, prefix, recipe.outputs)
  if ('missing' in output) throw await outputMissingIn(task, source, recipe, output.missing)
  const guard = guardOf(task, recipe)
  const files = await storeSite(task.tools.artifacts, entriesOfSource(source, output), '/build', guard)
  return publishFiles(task, recipe, { files, guard })
}

export async function publishSite(task: Task, source: Source, packer: Packer, recipe: Recipe): Promise<Published> {
  const guard = guardOf(task, recipe)
  const plan = { root: task.root, candidates: recipe.outputs, without: neverPublished }
  const files = await packer.pack(plan, siteLimits, async (packed) => {
    if ('missing' in packed.output) throw await outputMissingIn(task, source, recipe, packed.output.missing)
    return storeSite(task.tools.artifacts, packed.entries(), packed.output.inside, guard)
  })
  return publishFiles(task, recipe, { files, guard })
}

type Stored = { files: Manifest['files']; guard: Guard<StoredFile> | null }

/** Only sites without a build are filtered, since a build only writes what should be published. */
const guardOf = ({ build }: Task, recipe: Recipe): Stored['guard'] =>
  recipe.build !== null || build.publishAnyway ? null : createGuard()

async function publishFiles(
  { tools, build, log, requireHeld }: Task,
  { detected }: Recipe,
  { files, guard }: Stored,
): Promise<Published> {
  const { cleanUrls } = build
  const spaFallback = isSinglePage(detected, files)
  for (const warning of guard?.warnings() ?? []) log.warn(warning)
  await checkRules(tools.artifacts, files, log)
  await requireHeld()
  await tools.artifacts.publish(build.id, { version: 1, kind: 'static', files, spaFallback, cleanUrls })
  const count = Object.keys(files).length
  log.system(`Published ${count} ${count === 1 ? 'file' : 'files'}`)
  return { server: false, bytes: bytesOf(files), files: count, spaFallback }
}

/** A site with its own 404 page is not a single-page app. */
export function isSinglePage({ spaFallback }: Pick<Detected, 'spaFallback'>, files: object): boolean {
  return spaFallback && !Object.hasOwn(files, '404.html') && appPages.some((name) => Object.hasOwn(files, name))
}

type ServerPrograms = Pick<FetchedTools, 'node'> & Pick<Recipe, 'manager'>

/** What the server runs with. npm is the machine's own. */
function programsOf({ node, manager }: ServerPrograms): Pick<Manifest, 'node' | 'manager'> {
  const { name = 'npm', version = null } = manager ?? {}
  return { ...(node && { node }), ...(name !== 'npm' && version !== null && { manager: { name, version } }) }
}

/**
 * Moves the whole tree with its dependencies, which may be above the root directory, because copying node_modules takes
 * seconds. Returns its size.
 */
export async function moveServerTree(task: Task, workspace: Workspace, { selfContained }: Recipe): Promise<number> {
  const { tools, build } = task
  startSync(task, workspace)
  const { bytes } = await workspace.prepareServerTree(selfContained, readList)
  await task.requireHeld()
  await moveTree(workspace.tree, tools.artifacts.serverDirectory(build.id))
  return bytes
}

/** Published files must be on disk. Starts writing them early, and publishing waits for it. */
export function startSync({ tools }: Task, { tree }: Workspace): void {
  if (!tools.artifacts.shared) void syncFileSystems([tree])
}

export async function publishServer(
  { tools, build, root, requireHeld }: Task,
  built: ServerPrograms & { bytes: number },
): Promise<Published> {
  const settings = { files: {}, spaFallback: false, cleanUrls: build.cleanUrls }
  const manifest = { version: 1, kind: 'node', root, ...settings, ...programsOf(built) } as const
  await requireHeld()
  await tools.artifacts.publish(build.id, manifest)
  return { server: true, bytes: built.bytes, files: null, spaFallback: false }
}
