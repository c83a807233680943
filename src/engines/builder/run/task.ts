// What every step of a build works with.
import type { Config } from '../../../config.ts'
import type { Artifacts } from '../../../platform/artifacts/artifacts.ts'
import type { Db } from '../../../platform/database/database.ts'
import type { RepositoryAccess } from '../../../platform/git/git-remote.ts'
import type { Repositories } from '../../../platform/git/repositories.ts'
import type { Urls } from '../../../platform/http/urls.ts'
import type { Programs } from '../../../sandbox/programs/programs.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import type { Build } from '../../../services/deployments/index.ts'
import type { BuildLog } from '../explain/log.ts'
import type { Caches } from './cache.ts'
import type { Disk } from './disk.ts'

export type BuildTools = {
  config: Config
  urls: Urls
  repositories: Repositories
  artifacts: Artifacts
  caches: Caches
  disk: Disk
  sandbox: Sandbox
  /** Address of the package registry, as npm of this machine names it. */
  packageRegistry: Promise<string>
  programs: Programs
  db: Db
}

/** What the edge serves now; `bytes` is its size, `files` is null for a server; `spaFallback` as detected, and as it is. */
export type Published = { server: boolean; bytes: number; files: number | null; spaFallback: boolean }

export type Task = {
  tools: BuildTools
  build: Build
  variables: Record<string, string>
  /** To the repository; no process but those that fetch it ever gets it. */
  access: RepositoryAccess | null
  /** Root directory of the project; empty, or without a slash at its end. */
  root: string
  /** The root directory as a path prefix: empty, or with a slash at its end. */
  prefix: string
  directory: string
  deadline: number
  log: BuildLog
  signal: AbortSignal
  /** Throws if another worker builds it by now. */
  requireHeld(): Promise<void>
}

export const timeLeft = ({ deadline }: Task) => Math.max(1, deadline - Date.now())
