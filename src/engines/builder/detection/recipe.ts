// The recipe for building a commit: from the project's settings, else from detection.
import type { NodeMajor } from '../../../sandbox/programs/node-versions.ts'
import type { Build } from '../../../services/deployments/index.ts'
import { librariesOf } from '../project/libraries.ts'
import {
  byYarn,
  type ChosenManager,
  chooseManager,
  dependenciesKeyOf,
  installCommandOf,
  usesPlugAndPlay,
} from '../project/toolchain.ts'
import type { Source } from '../tree/source-tree.ts'
import { type Detection, detect } from './detect.ts'

export type Recipe = Detection & {
  /** Null: nothing to install. */
  install: string | null
  /** Null: nothing to build, the files are served as they are. */
  build: string | null
  /** Null: this machine's npm. */
  manager: ChosenManager | null
  node: NodeMajor
  /** Directories of workspace packages that are built first, in this order. */
  libraries: string[]
  /** Cached dependencies are valid for the same key only; null without a lockfile. */
  dependenciesKey: string | null
  /** Whether the output is a server instead of files. */
  server: boolean
}

/** `root` is the root directory: empty, or with a trailing slash. */
export async function readRecipe(source: Source, root: string, build: Build): Promise<Recipe> {
  const detection = await detect(source, root, build)
  const { packageManager, kind, node } = detection.detected
  const server = kind === 'server'
  // A site that nothing builds needs no packages.
  const isIdle = build.framework === 'auto' && detection.detected.buildCommand === null && !server
  const manager = packageManager && !isIdle ? await chooseManager(source, packageManager) : null
  const startsByYarn = manager !== null && (await usesPlugAndPlay(source, manager))
  const own = (command: string | null) => (command !== null && startsByYarn ? byYarn(command) : command)
  const buildCommand = build.buildCommand ?? own(detection.detected.buildCommand)
  const startCommand = own(detection.detected.startCommand)
  const install = build.installCommand ?? (manager && installCommandOf(manager))
  const hash = manager?.lockfile && source.entries.get(manager.lockfile)?.hash
  return {
    ...detection,
    detected: { ...detection.detected, buildCommand, startCommand, packageManager: manager ?? packageManager },
    install,
    build: buildCommand,
    manager,
    node,
    libraries: manager && build.buildCommand === null ? await librariesOf(source, manager, root) : [],
    dependenciesKey: hash && install ? dependenciesKeyOf(hash, install, manager, node) : null,
    server,
  }
}
