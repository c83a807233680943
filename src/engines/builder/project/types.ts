// Types for what is detected about a repository before its build.

export type ManagerName = 'npm' | 'pnpm' | 'yarn' | 'bun'

export type PackageManager = {
  name: ManagerName
  /** The exact version in `packageManager`; null: the newest one that fits the lockfile. */
  version: string | null
  /** Relative to the repository; null without one. */
  lockfile: string | null
  /** Where it runs: the workspace's directory or the project's own; empty, or with a trailing slash. */
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
  /** Runs in the published root directory; null for files. */
  startCommand: string | null
  /** Whether unknown paths get the page of a single-page app, unless the project's setting overrides it. */
  spaFallback: boolean
  /** The reasons, as sentences for the customer. */
  because: string[]
}
