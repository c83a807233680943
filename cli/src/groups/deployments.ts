// Commands for deployments and production.
import { projectOption, type Tree } from '../kit/tree.ts'

export function declareDeployments({ top, on }: Tree): void {
  on(
    top('deploy [directory]', 'upload a folder, build it and publish it; creates the project if the folder has none')
      .addOption(projectOption())
      .option('--prod', 'take over production when it is ready')
      .option('--prebuilt', 'publish the files as they are, without a build')
      .option('--ref <ref>', "deploy a branch, tag or commit of the project's repository instead")
      .option('--no-wait', "don't wait for the build"),
    async () => (await import('../commands/deploy.ts')).deploy,
  )
  on(
    top('redeploy [deployment]', 'build the same source again (default: the newest deployment)')
      .addOption(projectOption())
      .option('--prod', 'take over production when it is ready (default: same as the original)')
      .option('--no-wait', "don't wait for the build"),
    async () => (await import('../commands/builds.ts')).redeploy,
  )
  on(
    top('cancel [deployment]', 'cancel a queued or running build (default: the newest)').addOption(projectOption()),
    async () => (await import('../commands/builds.ts')).cancel,
  )
  on(
    top('logs [deployment]', 'show the log of a deployment (default: the one that serves production)')
      .addOption(projectOption())
      .option('-f, --follow', 'follow the log (default: the build in progress, if any)'),
    async () => (await import('../commands/deployments.ts')).logs,
  )
  on(
    top('ls', 'list deployments, newest first')
      .addOption(projectOption())
      .option('-a, --all', 'of all projects')
      .option('-n, --limit <count>', 'how many', '20'),
    async () => (await import('../commands/deployments.ts')).list,
  )
  on(
    top('inspect <deployment>', 'show a deployment')
      .addOption(projectOption())
      .option('-w, --wait', 'wait until it is ready or has failed'),
    async () => (await import('../commands/deployments.ts')).inspect,
  )
  on(
    top('promote <deployment>', 'promote a ready deployment to production, and remove a pin')
      .addOption(projectOption())
      .option('--pin', "pin it: later deployments don't take over"),
    async () => (await import('../commands/deployments.ts')).promote,
  )
  on(
    top(
      'rollback [deployment]',
      'return production to the previous deployment, or the given one, and pin it',
    ).addOption(projectOption()),
    async () => (await import('../commands/deployments.ts')).rollback,
  )
  on(
    top('pull-requests', 'list open pull requests, newest first')
      .addOption(projectOption())
      .option('-a, --all', 'include closed ones'),
    async () => (await import('../commands/pull-requests.ts')).list,
  )
  on(
    top('approve <number>', 'build a commit of a pull request from a fork')
      .addOption(projectOption())
      .option('--commit <hash>', 'the commit you reviewed (default: the newest, after confirmation)'),
    async () => (await import('../commands/pull-requests.ts')).approve,
  )
  on(
    top('open [deployment]', 'open production, or a deployment, in the browser').addOption(projectOption()),
    async () => (await import('../commands/open.ts')).open,
  )
}
