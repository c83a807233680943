// A build failure caused by the project or its repository, not by the platform: ends in ERROR, never retried.

export type FailureCode =
  | 'clone_failed'
  | 'lfs_unavailable'
  | 'ref_not_found'
  | 'repository_unreachable'
  | 'install_failed'
  | 'build_failed'
  | 'build_timeout'
  | 'build_out_of_memory'
  | 'build_out_of_disk'
  | 'output_missing'
  | 'output_unsafe'
  | 'output_too_large'
  | 'quota_exceeded'
  | 'server_unhealthy'
  | 'platform_disk_full'
  | 'platform_storage_unavailable'
  | 'platform_runner_unavailable'
  | 'worker_lost'
  | 'internal_error'

export class BuildFailure extends Error {
  readonly code: FailureCode

  constructor(code: FailureCode, message: string) {
    super(message)
    this.code = code
  }
}
