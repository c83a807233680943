// Commands for scripts and development: events, shell completion and direct API calls.
import type { Command } from 'commander'
import type { Tree } from '../kit/tree.ts'

/** `createFullProgram`: the tree with all commands, for completion. */
export function declareTools({ top, on }: Tree, createFullProgram: () => Command): void {
  on(
    top('events', 'list events')
      .option('-f, --follow', 'print new events as they happen')
      .option('--type <types...>', 'only these, such as deployment.*')
      .option('-n, --limit <count>', 'how many', '20'),
    async () => (await import('../commands/events.ts')).events,
  )
  on(
    top('listen', 'send events to a program on this machine, signed like webhooks')
      .requiredOption('--forward-to <url>', 'a local URL, such as http://localhost:3000/hooks')
      .option('--type <types...>', 'only these, such as deployment.*')
      .option('--secret <secret>', 'signing secret, whsec_… (default: a new one)'),
    async () => (await import('../commands/events.ts')).listen,
  )
  on(top('completion <shell>', 'print a completion script for bash, zsh or fish'), async () =>
    (await import('../commands/completion.ts')).completion(createFullProgram()),
  )
  on(
    top('api <path>', 'call the API directly, such as /projects')
      .option('-X, --method <method>', 'request method')
      .option('-d, --data <body>', 'request body; @file reads a file, - reads stdin')
      .option('-f, --field <pairs...>', 'name=value: a field of the body, or a query parameter with GET')
      .option('-H, --header <headers...>', 'request header, name: value')
      .option('-i, --include', 'print the status and headers too'),
    async () => (await import('../commands/api.ts')).api,
  )
}
