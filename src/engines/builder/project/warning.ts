// Warnings about a build that don't make it fail.

export type Warning = {
  code:
    | 'several_lockfiles'
    | 'lockfile_outdated'
    | 'node_version_unsupported'
    | 'package_manager_unknown'
    | 'file_ignored'
  message: string
  file?: string
}
