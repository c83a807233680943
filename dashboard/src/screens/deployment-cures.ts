// What to do about a deployment that failed. A code that is missing here does not compile.
import type { Schemas } from '../kit/index.ts'

type Code = Schemas['DeploymentErrorCode']
export type Cure = {
  cure: string /** Where in the project it is set. */
  tab?: 'settings' | 'variables'
}

const later = 'Nothing is wrong with the project. Deploy it again later.'

export const cures: Record<Code, Cure> = {
  ref_not_found: {
    cure: 'Push the branch first, or deploy another one.',
  },
  upload_incomplete: { cure: 'Deploy them again.' },
  repository_unreachable: {
    cure: 'Look whether the host is up, then deploy again.',
  },
  repository_access_denied: {
    cure: 'Check its name, and the deploy key or token of the project.',
  },
  host_key_changed: {
    cure: 'Ask its operator. If the key was changed, set the new host keys of the project.',
  },
  clone_failed: {
    cure: 'The log says why. Check the repository and the root directory in the settings.',
    tab: 'settings',
  },
  lfs_unavailable: {
    cure: 'Check that the LFS store of the repository answers, then deploy again.',
  },
  build_tool_missing: {
    cure: 'Ask the operator to install it, or commit the built site.',
  },
  install_failed: {
    cure: 'Commit a lockfile that installs, or change the install command.',
    tab: 'settings',
  },
  build_failed: {
    cure: 'A variable that is set on your machine may be missing here.',
    tab: 'variables',
  },
  build_timeout: {
    cure: 'Build less, or ask the operator for more time.',
  },
  build_out_of_memory: {
    cure: 'Build with less in parallel, or ask the operator for more.',
  },
  build_out_of_disk: {
    cure: 'Remove large files from the repository, or ask the operator for more.',
  },
  output_missing: {
    cure: 'Set the output directory to the folder that your build writes.',
    tab: 'settings',
  },
  output_unsafe: {
    cure: 'Remove that file from the output; the log names it.',
  },
  output_too_large: {
    cure: 'Publish less: leave source maps and large media out.',
  },
  quota_exceeded: {
    cure: 'Delete old deployments, or ask the operator for a higher limit.',
  },
  server_unhealthy: {
    cure: 'Listen on the port of the variable PORT.',
    tab: 'variables',
  },
  platform_disk_full: { cure: later },
  platform_storage_unavailable: { cure: later },
  platform_runner_unavailable: { cure: later },
  worker_lost: { cure: later },
  internal_error: {
    cure: 'Deploy again. If it stays, open a ticket that names the deployment.',
  },
  account_suspended: {
    cure: 'Contact the operator, and deploy again when the suspension is over.',
  },
}
