// The last step of a build: its files, or the tree of its server, become what the edge serves.
import { bytesOf, type Manifest } from '../../platform/artifacts.ts'
import { syncFileSystems } from '../../platform/durable.ts'
import { projectsIn } from './detection/detect.ts'
import { outputMissing } from './output.ts'
import type { Packer } from './pack.ts'
import type { Recipe } from './recipe.ts'
import { checkRules } from './rules.ts'
import { moveTree, readList } from './server-tree.ts'
import { entriesOfSource, neverPublished, outputInSource, siteLimits, storeSite } from './site.ts'
import type { Source } from './source-tree.ts'
import type { Published, Task } from './task.ts'
import type { FetchedTools } from './toolchain.ts'
import type { Workspace } from './workspace.ts'

async function missingFrom({ build, prefix }: Task, source: Source, recipe: Recipe, names: string[]) {
  // Nobody who has set what is published meant another folder.
  const isOpen = build.framework === 'auto' && build.outputDirectory === null
  const apps = isOpen ? await projectsIn(source, prefix) : []
  return outputMissing(recipe.outputs, { names, apps }, recipe, build)
}

export async function publishSource(task: Task, source: Source, recipe: Recipe): Promise<Published> {
  const { prefix, log } = task
  log.step('publish')
  const output = outputInSource(source, prefix, recipe.outputs)
  if ('missing' in output) throw await missingFrom(task, source, recipe, output.missing)
  return publishFiles(task, await storeSite(task.tools.artifacts, entriesOfSource(source, output), '/build'))
}

export async function publishSite(task: Task, source: Source, packer: Packer, recipe: Recipe): Promise<Published> {
  const plan = { root: task.root, candidates: recipe.outputs, without: neverPublished }
  const files = await packer.pack(plan, siteLimits, async (packed) => {
    if ('missing' in packed.output) throw await missingFrom(task, source, recipe, packed.output.missing)
    return storeSite(task.tools.artifacts, packed.entries(), packed.output.inside)
  })
  return publishFiles(task, files)
}

async function publishFiles({ tools, build, log, requireHeld }: Task, files: Manifest['files']): Promise<Published> {
  const { spaFallback, cleanUrls } = build
  await checkRules(tools.artifacts, files, log)
  await requireHeld()
  await tools.artifacts.publish(build.id, { version: 1, kind: 'static', files, spaFallback, cleanUrls })
  log.system(`Published ${Object.keys(files).length} files`)
  return { server: false, bytes: bytesOf(files), files: Object.keys(files).length }
}

type Built = Pick<FetchedTools, 'node'> & Pick<Recipe, 'manager'>

/** What its server runs with; npm is that of the machine. */
function programsOf({ node, manager }: Built): Pick<Manifest, 'node' | 'manager'> {
  const { name = 'npm', version = null } = manager ?? {}
  return { ...(node && { node }), ...(name !== 'npm' && version !== null && { manager: { name, version } }) }
}

/**
 * The whole tree with its dependencies, which may be above the root directory, unless the build has copied them. It is
 * moved: to copy a node_modules takes seconds. Returns its size.
 */
export async function layOut(task: Task, workspace: Workspace, { selfContained }: Recipe): Promise<number> {
  const { tools, build } = task
  writeOut(task, workspace)
  const { bytes } = await workspace.settle(selfContained, readList)
  await task.requireHeld()
  await moveTree(workspace.tree, tools.artifacts.serverDirectory(build.id))
  return bytes
}

/** What is published has to be on the disk. The writing begins before it is waited for, in the end. */
export function writeOut({ tools }: Task, { tree }: Workspace): void {
  if (!tools.artifacts.shared) void syncFileSystems([tree])
}

export async function publishServer(
  { tools, build, root, requireHeld }: Task,
  built: Built & { bytes: number },
): Promise<Published> {
  const { spaFallback, cleanUrls } = build
  const settings = { files: {}, spaFallback, cleanUrls }
  const manifest = { version: 1, kind: 'node', root, ...settings, ...programsOf(built) } as const
  await requireHeld()
  await tools.artifacts.publish(build.id, manifest)
  return { server: true, bytes: built.bytes, files: null }
}
