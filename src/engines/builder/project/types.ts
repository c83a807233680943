// What is found out about a repository before it is built.

export type ManagerName = 'npm' | 'pnpm' | 'yarn' | 'bun'

export type PackageManager = {
  name: ManagerName
  /** As `packageManager` says, an exact version; null for the newest one that fits the lockfile. */
  version: string | null
  /** Relative to the repository; null without one. */
  lockfile: string | null
  /** Where it is run: the directory of the workspace, or the project's own; empty or with a slash at its end. */
  directory: string
}

export type NodeMajor = '20' | '22' | '24'

export type Detected = {
  framework: string
  /** Null: nothing to install. */
  packageManager: PackageManager | null
  node: NodeMajor
  buildCommand: string | null
  /** Relative to the root directory. */
  output: string
  kind: 'files' | 'server'
  /** For servers, null otherwise: run in the root directory of what was published. */
  startCommand: string | null
  /** Unknown paths get the page of a single-page app, unless the project's setting says something else. */
  spaFallback: boolean
  /** Why, in sentences that a customer understands. */
  because: string[]
}
