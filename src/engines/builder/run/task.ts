// The context that all steps of a build share.
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
  /** URL of the package registry, from this machine's npm. */
  packageRegistry: Promise<string>
  programs: Programs
  db: Db
}

/** What was published. `files` is null for a server. */
export type Published = { server: boolean; bytes: number; files: number | null; spaFallback: boolean }

export type Task = {
  tools: BuildTools
  build: Build
  variables: Record<string, string>
  /** Access to the repository, passed only to the processes that fetch it. */
  access: RepositoryAccess | null
  /** The project's root directory, without a trailing slash. */
  root: string
  /** The root directory as a path prefix: empty, or with a trailing slash. */
  prefix: string
  directory: string
  deadline: number
  log: BuildLog
  signal: AbortSignal
  /** Throws if another worker has taken over. */
  requireHeld(): Promise<void>
}

export const timeLeft = ({ deadline }: Task) => Math.max(1, deadline - Date.now())
