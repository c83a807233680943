// How a commit is built: from the project's settings, else from what is detected.
import { createHash } from 'node:crypto'
import type { Build } from '../../services/deployments/builds.ts'
import { type Detection, detect } from './detection/detect.ts'
import type { PackageManager } from './detection/types.ts'
import type { Source } from './source-tree.ts'

export type Recipe = Detection & {
  /** Null: nothing to install. */
  install: string | null
  /** Null: nothing to build, the files are served as they are. */
  build: string | null
  /** Cached dependencies are valid only for the same key; null without a lockfile. */
  dependenciesKey: string | null
  /** Started with a command instead of being served from files. */
  server: boolean
}

const installs = {
  pnpm: 'npx --yes pnpm@10 install --frozen-lockfile',
  yarn: 'npx --yes yarn@1 install --frozen-lockfile --non-interactive',
  // Not `npm ci`, which refuses lockfiles written on a machine that lacked the packages of another platform.
  npm: 'npm install --no-audit --no-fund',
  bun: 'npx --yes bun install --frozen-lockfile',
} as const

/** `root` is the root directory, empty or with a slash at its end. */
export async function readRecipe(source: Source, root: string, build: Build): Promise<Recipe> {
  const detection = await detect(source, root, build)
  const { packageManager: manager, buildCommand, kind } = detection.detected
  const server = kind === 'server'
  // A site that nothing builds needs no packages.
  const isIdle = build.framework === 'auto' && buildCommand === null && !server
  const install = build.installCommand ?? (manager && !isIdle ? installs[manager.name] : null)
  return {
    ...detection,
    install,
    build: buildCommand,
    dependenciesKey: keyOf(source, manager, install),
    server,
  }
}

/** The lockfile's git hash stands for its content. */
function keyOf({ entries }: Source, manager: PackageManager | null, command: string | null): string | null {
  const hash = manager?.lockfile && entries.get(manager.lockfile)?.hash
  if (!hash || command === null) return null
  return createHash('sha256').update(`${process.version} ${process.arch} ${command}\n${hash}`).digest('hex')
}
