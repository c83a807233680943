// What a customer should know about a build that does not fail because of it.

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
