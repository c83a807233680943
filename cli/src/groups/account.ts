// Commands for signing in, tokens and support.
import { projectOption, type Tree } from '../kit/tree.ts'

export function declareSignIn({ top, on }: Tree): void {
  on(
    top('login', 'sign in by approving it in the console, or with --token')
      .option('--oidc', "sign in with the CI job's identity token")
      .addOption(projectOption()),
    async () => (await import('../commands/login.ts')).login,
  )
  on(top('logout', 'revoke the stored token and delete it'), async () => (await import('../commands/login.ts')).logout)
  on(
    top('whoami', 'show the current account and what the token can do'),
    async () => (await import('../commands/login.ts')).whoami,
  )
}

export function declareAccount({ top, add, on }: Tree): void {
  const tokens = top('tokens', 'API tokens of the account')
  on(add(tokens, 'ls', 'list tokens'), async () => (await import('../commands/tokens.ts')).list)
  on(
    add(tokens, 'create <name>', 'create a token; its secret is shown once')
      .option('--scope <scopes...>', 'scopes of the token')
      .option('-p, --project <names...>', 'only for these projects')
      .option('--expires <time>', 'expiry, such as 2027-01-31T12:00:00Z or 90d'),
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
      .option('--related <what>', 'deployment ID, request ID or domain'),
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
