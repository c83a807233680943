// What to do about a deployment that failed. A code that is missing here does not compile.
import type { Schemas } from '../kit/index.ts'

type Code = Schemas['DeploymentErrorCode']
export type Cure = {
  cause: string
  cure: string /** Where in the project it is set. */
  tab?: 'settings' | 'variables'
}

const later = 'Nothing is wrong with the project. Deploy it again later.'

export const cures: Record<Code, Cure> = {
  ref_not_found: {
    cause: 'The repository has no such branch, tag or commit.',
    cure: 'Push the branch first, or deploy another one.',
  },
  upload_incomplete: { cause: 'Not all files were uploaded in time.', cure: 'Deploy them again.' },
  repository_unreachable: {
    cause: 'The host of the repository did not answer.',
    cure: 'Look whether the host is up, then deploy again.',
  },
  repository_access_denied: {
    cause: 'The repository does not exist, or the project may not read it.',
    cure: 'Check its name. For a private one, set a deploy key or a token as the access of the project.',
    tab: 'settings',
  },
  host_key_changed: {
    cause: 'The host of the repository shows another key than the one that is kept.',
    cure: 'Ask its operator whether the key was changed. If so, set the new host keys in the access of the project.',
  },
  clone_failed: {
    cause: 'The repository could not be cloned.',
    cure: 'The log says why. Check the repository and the root directory in the settings.',
    tab: 'settings',
  },
  lfs_unavailable: {
    cause: 'Files are kept in Git LFS and could not be fetched.',
    cure: 'Check that the LFS store of the repository answers, then deploy again.',
  },
  build_tool_missing: {
    cause: 'The program that builds the site is not installed on the platform.',
    cure: 'Ask the operator to install it, or commit the built site and choose plain files.',
    tab: 'settings',
  },
  install_failed: {
    cause: 'The install command ended with an error.',
    cure: 'The last lines of the log have its output. Commit a lockfile that installs, or change the install command.',
    tab: 'settings',
  },
  build_failed: {
    cause: 'The build command ended with an error.',
    cure: 'The last lines of the log have its output. A variable that is set on your machine may be missing here.',
    tab: 'variables',
  },
  build_timeout: {
    cause: 'The build took longer than it may.',
    cure: 'Build less, or ask the operator for more time.',
  },
  build_out_of_memory: {
    cause: 'The build needed more memory than it may use.',
    cure: 'Build with less in parallel, or ask the operator for more.',
  },
  build_out_of_disk: {
    cause: 'The build needed more disk than it may use.',
    cure: 'Remove large files from the repository, or ask the operator for more.',
  },
  output_missing: {
    cause: 'The build made nothing to publish where it was looked for.',
    cure: 'Set the output directory to the folder that your build writes.',
    tab: 'settings',
  },
  output_unsafe: {
    cause: 'The output has a file that cannot be published, such as a link that leaves it.',
    cure: 'Remove that file from the output; the log names it.',
  },
  output_too_large: {
    cause: 'The output is larger than a site may be.',
    cure: 'Publish less: leave source maps and large media out.',
  },
  quota_exceeded: {
    cause: 'The account has used up its storage or its build minutes of this month.',
    cure: 'Delete old deployments, or ask the operator for a higher limit.',
  },
  server_unhealthy: {
    cause: 'The server ended, did not listen on its port, or answered GET / with an error.',
    cure: 'Listen on the port of the variable PORT. The last lines that the server printed are in the log.',
    tab: 'variables',
  },
  platform_disk_full: { cause: 'The platform had no room on its disk.', cure: later },
  platform_storage_unavailable: { cause: 'The platform could not store the output.', cure: later },
  platform_runner_unavailable: { cause: 'No runner of the platform took the server.', cure: later },
  worker_lost: { cause: 'The worker that built it was lost, twice.', cure: later },
  internal_error: {
    cause: 'The build broke on the side of the platform.',
    cure: 'Deploy again. If it stays, open a ticket that names the deployment.',
  },
  account_suspended: {
    cause: 'The account was suspended before the build had finished.',
    cure: 'Contact the operator, and deploy again when the suspension is over.',
  },
}
