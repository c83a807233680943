// Commands for signing in, tokens and support.
import { projectOption, type Tree } from '../kit/tree.ts'

export function declareSignIn({ top, on }: Tree): void {
  on(
    top('login', 'sign in: approve it in the console, or pass --token')
      .option('--oidc', 'sign in with the identity of a CI job')
      .addOption(projectOption()),
    async () => (await import('../commands/login.ts')).login,
  )
  on(top('logout', 'revoke the stored token and delete it'), async () => (await import('../commands/login.ts')).logout)
  on(
    top('whoami', 'show who is signed in and what the token may do'),
    async () => (await import('../commands/login.ts')).whoami,
  )
}

export function declareAccount({ top, add, on }: Tree): void {
  const tokens = top('tokens', 'API tokens of the account')
  on(add(tokens, 'ls', 'list tokens'), async () => (await import('../commands/tokens.ts')).list)
  on(
    add(tokens, 'create <name>', 'create a token; its secret is shown once')
      .option('--scope <scopes...>', 'what it may do')
      .option('-p, --project <names...>', 'only for these projects')
      .option('--expires <time>', 'when it expires, such as 2027-01-31T12:00:00Z or 90d'),
    async () => (await import('../commands/tokens.ts')).create,
  )
  on(add(tokens, 'rm <id>', 'revoke a token'), async () => (await import('../commands/tokens.ts')).remove)

  const tickets = top('tickets', 'support tickets')
  on(
    add(tickets, 'ls', 'list tickets').option('--status <status>', 'only with this status'),
    async () => (await import('../commands/tickets.ts')).list,
  )
  on(
    add(tickets, 'open <subject>', 'open a ticket')
      .option('-m, --message <text>', 'message (default: stdin)')
      .option('--priority <priority>', 'low, normal, high or urgent')
      .option('--related <what>', 'ID of a deployment or request, or a domain'),
    async () => (await import('../commands/tickets.ts')).open,
  )
  on(
    add(tickets, 'show <id>', 'show a ticket with its messages'),
    async () => (await import('../commands/tickets.ts')).show,
  )
  on(
    add(tickets, 'reply <id>', 'reply to a ticket').option('-m, --message <text>', 'message (default: stdin)'),
    async () => (await import('../commands/tickets.ts')).reply,
  )
}
