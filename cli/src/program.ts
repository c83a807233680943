// The command tree. Each command's code is loaded when it runs.
import { Command } from 'commander'
import { declareAccount, declareSignIn } from './groups/account.ts'
import { declareDeployments } from './groups/deployments.ts'
import { declareDomains } from './groups/domains.ts'
import { declareProjects } from './groups/projects.ts'
import { declareTools } from './groups/tools.ts'
import { version } from './kit/built-in.ts'
import { createTree, type On } from './kit/tree.ts'

type Options = { only?: string | undefined; silent?: boolean }

/** The command tree, or `only` one command; `call` receives each command with a loader of its action. */
export function createProgram(call: On, { only, silent }: Options = {}): Command {
  const program = new Command('berth')
    .description('Deployments, domains, DNS and everything else on a Berth server.')
    .version(version, '-V, --version')
    .option('--json', "print the API's own objects as JSON")
    .option('--url <url>', 'server (BERTH_URL)')
    .option('--token <token>', 'API token (BERTH_TOKEN)')
    .option('-y, --yes', "don't ask for confirmation")
    .showHelpAfterError('(add --help for help)')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
  // With --json, usage errors are printed as JSON like all other errors.
  if (silent) program.configureOutput({ writeErr() {} })
  const tree = createTree(program, call, only)
  declareSignIn(tree)
  declareDeployments(tree)
  declareProjects(tree)
  declareDomains(tree)
  declareAccount(tree)
  declareTools(tree, () => createProgram(() => {}))
  return program
}
