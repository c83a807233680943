// Every command with its arguments and options; what it does is loaded when it is run.
import { Command, Option } from 'commander'
import type { Action } from './kit/action.ts'
import { version } from './kit/built-in.ts'

// biome-ignore lint/suspicious/noExplicitAny: each action has the options that are declared beside it.
type Load = () => Promise<Action<any>>

const projectOption = () => new Option('-p, --project <name>', 'project (default: the linked one)')

export type On = (command: Command, load: Load) => void

// Stands for a command that is not made, whatever is declared of it.
const unmade: Command = new Proxy({} as Command, { get: () => () => unmade })

/** The tree of commands, or `only` one of them; `call` says what happens when one is called. */
export function describe(call: On, { only, silent }: { only?: string | undefined; silent?: boolean } = {}): Command {
  const program = new Command('berth')
    .description('Deploys, domains, DNS and all else of a Berth server.')
    .version(version, '-V, --version')
    .option('--json', "print the API's own objects as JSON")
    .option('--url <address>', 'server (BERTH_URL)')
    .option('--token <token>', 'API token (BERTH_TOKEN)')
    .option('-y, --yes', 'do not ask')
    .showHelpAfterError('(add --help for help)')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
  // With --json what is wrong is told as all other errors are.
  if (silent) program.configureOutput({ writeErr() {} })
  const isMade = (name: string) => only === undefined || only === name
  const add = (parent: Command, usage: string, text: string) => parent.command(usage).description(text)
  const top = (usage: string, text: string) => (isMade(usage.split(' ')[0]!) ? add(program, usage, text) : unmade)
  const group = top
  const on: On = (command, load) => {
    if (command !== unmade) call(command, load)
  }

  on(
    top('login', 'sign in: approve it in the console, or give --token')
      .option('--oidc', 'sign in by the identity of a CI job')
      .addOption(projectOption()),
    async () => (await import('./commands/login.ts')).login,
  )
  on(top('logout', 'revoke the stored token and forget it'), async () => (await import('./commands/login.ts')).logout)
  on(
    top('whoami', 'show who is signed in, and what the token may do'),
    async () => (await import('./commands/login.ts')).whoami,
  )
  on(top('link [project]', 'name the project of this folder'), async () => (await import('./commands/link.ts')).link)

  on(
    top('deploy [directory]', 'upload a folder, build it and publish it')
      .addOption(projectOption())
      .option('--prod', 'take over production when it is ready')
      .option('--prebuilt', 'publish the files as they are, without a build')
      .option('--no-wait', 'do not wait for the build'),
    async () => (await import('./commands/deploy.ts')).deploy,
  )
  on(
    top('logs [deployment]', 'show the log of a deployment (default: the newest)')
      .addOption(projectOption())
      .option('-f, --follow', 'show what comes until the build ends'),
    async () => (await import('./commands/deployments.ts')).logs,
  )
  on(
    top('ls', 'list deployments, the newest first')
      .addOption(projectOption())
      .option('-a, --all', 'of all projects')
      .option('-n, --limit <count>', 'how many', '20'),
    async () => (await import('./commands/deployments.ts')).list,
  )
  on(
    top('inspect <deployment>', 'show a deployment').option('-w, --wait', 'until it is ready or has failed'),
    async () => (await import('./commands/deployments.ts')).inspect,
  )
  on(
    top('promote <deployment>', 'make a ready deployment production'),
    async () => (await import('./commands/deployments.ts')).promote,
  )
  on(
    top('rollback [deployment]', 'go back to the production before, or to a deployment, and stay there').addOption(
      projectOption(),
    ),
    async () => (await import('./commands/deployments.ts')).rollback,
  )
  on(
    top('open [deployment]', 'open production, or a deployment, in the browser').addOption(projectOption()),
    async () => (await import('./commands/open.ts')).open,
  )

  const projects = group('projects', 'projects of the account')
  on(add(projects, 'ls', 'list projects'), async () => (await import('./commands/projects.ts')).list)
  on(
    add(projects, 'create <name>', 'make a project')
      .option('--framework <name>', 'framework')
      .option('--repo <repository>', 'repository, owner/name'),
    async () => (await import('./commands/projects.ts')).create,
  )
  on(
    add(projects, 'rename <project> <name>', 'rename a project; the old name still works'),
    async () => (await import('./commands/projects.ts')).rename,
  )
  on(
    add(projects, 'rm <name>', 'delete a project with its deployments'),
    async () => (await import('./commands/projects.ts')).remove,
  )

  const domains = group('domains', 'domains of projects')
  on(
    add(domains, 'ls', 'list domains').addOption(projectOption()),
    async () => (await import('./commands/domains.ts')).list,
  )
  on(
    add(domains, 'add <name>', 'attach a domain, and show what to set for it')
      .addOption(projectOption())
      .option('-w, --wait', 'until it is verified and has its certificate'),
    async () => (await import('./commands/domains.ts')).add,
  )
  on(
    add(domains, 'verify <name>', 'look now whether the domain is yours').option('-w, --wait', 'until it is verified'),
    async () => (await import('./commands/domains.ts')).verify,
  )
  on(
    add(domains, 'rm <name>', 'detach a domain, and delete its zone'),
    async () => (await import('./commands/domains.ts')).remove,
  )

  const dns = group('dns', 'DNS records of domains')
  on(
    add(dns, 'ls <domain>', 'list records')
      .option('--type <type>', 'only of this type')
      .option('--name <name>', 'only of this name'),
    async () => (await import('./commands/dns.ts')).list,
  )
  on(
    add(dns, 'set <domain> <name> <type> <values...>', 'set all records of a name and type').option(
      '--ttl <seconds>',
      'seconds',
    ),
    async () => (await import('./commands/dns.ts')).set,
  )
  on(
    add(dns, 'rm <domain> <name> [type]', 'delete the records of a name, or one by rec_…'),
    async () => (await import('./commands/dns.ts')).remove,
  )
  on(
    add(dns, 'import <domain> <file>', 'replace the records by those of a zone file (- is stdin)')
      .option('--dry-run', 'show what would change')
      .option('--skip-unsupported', 'leave out lines of types that are not served'),
    async () => (await import('./commands/dns.ts')).importZone,
  )
  on(add(dns, 'export <domain>', 'print the zone file'), async () => (await import('./commands/dns.ts')).exportZone)

  on(
    add(dns, 'dnssec <domain> [state]', 'show how a zone is signed, or sign it: on, off'),
    async () => (await import('./commands/dns.ts')).dnssec,
  )

  const env = group('env', 'variables of a project')
  on(add(env, 'ls', 'list variables').addOption(projectOption()), async () => (await import('./commands/env.ts')).list)
  on(
    add(env, 'set <key> [value]', 'set a variable; without a value it is read from stdin')
      .addOption(projectOption())
      .option('--target <target>', 'production, preview or all', 'all')
      .option('--readable', 'the value may be read again'),
    async () => (await import('./commands/env.ts')).set,
  )
  on(
    add(env, 'rm <key>', 'delete a variable')
      .addOption(projectOption())
      .option('--target <target>', 'only the value of this target'),
    async () => (await import('./commands/env.ts')).remove,
  )
  on(
    add(env, 'pull [file]', 'write readable variables into a file')
      .addOption(projectOption())
      .option('--target <target>', 'production or preview', 'preview'),
    async () => (await import('./commands/env.ts')).pull,
  )

  const hooks = group('hooks', 'addresses that start a deployment')
  on(
    add(hooks, 'ls', 'list deploy hooks').addOption(projectOption()),
    async () => (await import('./commands/hooks.ts')).list,
  )
  on(
    add(hooks, 'add <name>', 'make a deploy hook; its address is shown once')
      .addOption(projectOption())
      .option('--ref <ref>', 'branch, tag or commit (default: the production branch)'),
    async () => (await import('./commands/hooks.ts')).add,
  )
  on(
    add(hooks, 'rm <id>', 'delete a deploy hook').addOption(projectOption()),
    async () => (await import('./commands/hooks.ts')).remove,
  )
  const crons = group('crons', 'what is called on a schedule')
  on(
    add(crons, 'ls', 'list crons, with their next and last run').addOption(projectOption()),
    async () => (await import('./commands/hooks.ts')).crons,
  )

  const tokens = group('tokens', 'API tokens of the account')
  on(add(tokens, 'ls', 'list tokens'), async () => (await import('./commands/tokens.ts')).list)
  on(
    add(tokens, 'create <name>', 'make a token; its secret is shown once')
      .option('--scope <scopes...>', 'what it may do')
      .option('--project <names...>', 'only for these projects')
      .option('--expires <time>', 'when it ends, such as 2027-01-31T12:00:00Z or 90d'),
    async () => (await import('./commands/tokens.ts')).create,
  )
  on(add(tokens, 'rm <id>', 'revoke a token'), async () => (await import('./commands/tokens.ts')).remove)

  const tickets = group('tickets', 'questions to support')
  on(
    add(tickets, 'ls', 'list tickets').option('--status <status>', 'only of this status'),
    async () => (await import('./commands/tickets.ts')).list,
  )
  on(
    add(tickets, 'open <subject>', 'ask support')
      .option('-m, --message <text>', 'the question (default: stdin)')
      .option('--priority <priority>', 'low, normal, high or urgent')
      .option('--related <what>', 'deployment, domain or request id'),
    async () => (await import('./commands/tickets.ts')).open,
  )
  on(
    add(tickets, 'show <id>', 'show a ticket with its messages'),
    async () => (await import('./commands/tickets.ts')).show,
  )
  on(
    add(tickets, 'reply <id>', 'answer').option('-m, --message <text>', 'the answer (default: stdin)'),
    async () => (await import('./commands/tickets.ts')).reply,
  )

  on(
    top('events', 'list what happened')
      .option('-f, --follow', 'show what happens from now on')
      .option('--type <types...>', 'only these, such as deployment.*')
      .option('-n, --limit <count>', 'how many', '20'),
    async () => (await import('./commands/events.ts')).events,
  )
  on(
    top('listen', 'send events to a local address, signed as webhooks are')
      .requiredOption('--forward-to <address>', 'such as http://localhost:3000/hooks')
      .option('--type <types...>', 'only these, such as deployment.*')
      .option('--secret <secret>', 'whsec_… to sign with (default: a new one)'),
    async () => (await import('./commands/events.ts')).listen,
  )
  on(top('completion <shell>', 'print a script for bash, zsh or fish'), async () =>
    (await import('./commands/completion.ts')).completion(describe(() => {})),
  )
  on(
    top('api <path>', 'call the API itself, such as /projects')
      .option('-X, --method <method>', 'method')
      .option('-d, --data <body>', 'body; @file reads a file, - stdin')
      .option('-f, --field <pairs...>', 'a field of the body, or of the query with GET: name=value')
      .option('-H, --header <headers...>', 'header: name: value')
      .option('-i, --include', 'print the status and the headers too'),
    async () => (await import('./commands/api.ts')).api,
  )
  return program
}
