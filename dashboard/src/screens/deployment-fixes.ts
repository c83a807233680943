// How to fix a failed deployment, by error code. A missing code doesn't compile.
import type { Schemas } from '../kit/index.ts'

type Code = Schemas['DeploymentErrorCode']
export type Fix = {
  text: string /** The tab of the project where it is set. */
  tab?: 'settings' | 'variables'
}

const later = 'Your project is fine. Deploy again later.'

export const fixes: Record<Code, Fix> = {
  ref_not_found: {
    text: 'Push the branch first, or deploy another one.',
  },
  upload_incomplete: { text: 'Deploy again.' },
  repository_unreachable: {
    text: 'Check that the host is up, then deploy again.',
  },
  repository_access_denied: {
    text: "Check the repository's name and the project's deploy key or token.",
  },
  host_key_changed: {
    text: "Ask the host's operator. If the key did change, update the project's host keys.",
  },
  clone_failed: {
    text: 'The log says why. Check the repository and the root directory in the settings.',
    tab: 'settings',
  },
  lfs_unavailable: {
    text: "Check that the repository's LFS store is up, then deploy again.",
  },
  build_tool_missing: {
    text: 'Ask the operator to install it, or commit the built site.',
  },
  install_failed: {
    text: 'Commit a lockfile that installs, or change the install command.',
    tab: 'settings',
  },
  build_failed: {
    text: 'A variable that is set on your machine may be missing here.',
    tab: 'variables',
  },
  build_timeout: {
    text: 'Speed up the build, or ask the operator for more time.',
  },
  build_out_of_memory: {
    text: 'Run fewer steps in parallel, or ask the operator for more memory.',
  },
  build_out_of_disk: {
    text: 'Remove large files from the repository, or ask the operator for more space.',
  },
  output_missing: {
    text: 'Set the output directory to the folder that your build writes.',
    tab: 'settings',
  },
  output_unsafe: {
    text: 'Remove the file that the log names from the output.',
  },
  output_too_large: {
    text: 'Publish less: leave out source maps and large media.',
  },
  quota_exceeded: {
    text: 'Delete old deployments, or ask the operator for a higher limit.',
  },
  server_unhealthy: {
    text: 'Listen on the port in the PORT variable.',
    tab: 'variables',
  },
  platform_disk_full: { text: later },
  platform_storage_unavailable: { text: later },
  platform_runner_unavailable: { text: later },
  worker_lost: { text: later },
  internal_error: {
    text: 'Deploy again. If it still fails, open a ticket with the deployment ID.',
  },
  account_suspended: {
    text: 'Contact the operator. Deploy again once the suspension ends.',
  },
}
