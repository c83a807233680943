// The command line: parses arguments and runs a command.
import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { migrate } from '../../prisma/migrate.ts'
import { withCatalogue } from '../api/http/responses/error-catalogue.ts'
import { renderOpenApi } from '../api/openapi-file.ts'
import { type Config, ConfigError, loadConfig, readEnvironment } from '../config.ts'
import type { Database } from '../platform/database/database.ts'
import { Fault } from '../platform/errors.ts'
import { BadArchive } from '../platform/files/tar.ts'
import { WorkerFailed } from '../roles/cluster/process.ts'
import { openStorage } from '../roles/opening/storage.ts'
import { tokenScopes } from '../schemas/tokens.ts'
import { createAccount } from '../services/accounts/index.ts'
import { BackupError } from '../services/backups/index.ts'
import type { Scope } from '../services/identity/index.ts'
import { WrongKey } from '../services/secrets/index.ts'
import { insertToken } from '../services/tokens/index.ts'
import { backup } from './backup.ts'
import { dnssec } from './dnssec.ts'
import { jobs } from './jobs.ts'
import { testMail } from './mail.ts'
import { drain, nodes } from './nodes.ts'
import { restore } from './restore.ts'
import { secrets } from './secrets.ts'
import { serve } from './serve.ts'
import { UsageError } from './usage-error.ts'
import { users } from './users.ts'

const usage = `Usage:
  berth serve [--roles api,worker,runner,edge,nameserver] [--workers <number>|auto]
  berth migrate                                   apply migrations to DATABASE_URL
  berth nodes [--json]                            the processes of the installation
  berth drain|undrain <node>                      stop or resume taking new work on a node, by id or name
  berth accounts create <name>                    print the account id and its test key
  berth tokens create --account <id|name> --scopes <scope,…> --name <name>     print the secret once
  berth users link <email|id> [--account <id|name>] [--role owner|admin|developer|viewer] [--operator|--no-operator]
                                                  print a sign-in link; creates the person if necessary
  berth users list [--json]                       everybody who can sign in, and their accounts
  berth mail test <address>                       send a test email now, and print the mail server's response
  berth secrets rotate                            re-seal every secret with SECRETS_KEY, even while Berth runs
  berth secrets status                            show which keys secrets are sealed with
  berth dnssec [on|off]                           sign DEPLOYMENT_DOMAIN, and print the DS record for its registrar
  berth jobs list [--json]                        failed jobs
  berth jobs retry|discard <id…|all>              run failed jobs again, or delete them
  berth backup <file>                             write everything into one archive, even while Berth runs
  berth restore <file>                            restore into an empty DATA_DIR and an empty database
  berth openapi [--check]                         write openapi.yaml and the error catalogue, or fail if one differs`

/** The usage of one command; of all without one or for an unknown one. */
function usageOf(command: string | undefined): string {
  // Each entry starts at the indentation of the first; lines indented further belong to the entry above.
  const [title, ...entries] = usage.split(/\n(?= {2}berth )/)
  const own = entries.filter((entry) => command && entry.trim().split(/\s+/)[1]!.split('|').includes(command))
  return [title, ...(own.length > 0 ? own : entries)].join('\n')
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      allowNegative: true,
      options: {
        roles: { type: 'string' },
        workers: { type: 'string' },
        account: { type: 'string' },
        scopes: { type: 'string' },
        name: { type: 'string' },
        role: { type: 'string' },
        operator: { type: 'boolean' },
        check: { type: 'boolean' },
        json: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

async function withStorage(config: Config, work: (storage: Awaited<ReturnType<typeof openStorage>>) => Promise<void>) {
  const storage = await openStorage(config)
  try {
    await work(storage)
  } finally {
    await storage.close()
  }
}

async function main(args: string[]): Promise<void> {
  const { values, positionals } = parse(args)
  const [command, verb, name] = positionals
  if (values.help || command === undefined) return console.log(usageOf(command))
  if (command === 'openapi') return openapi(values.check ?? false)
  // Needs no other setting, so that this step can run without the servers' secrets.
  if (command === 'migrate') return migrateDatabase(readEnvironment().DATABASE_URL)
  const config = loadConfig(readEnvironment())
  if (command === 'serve') return serve(config, values)
  if (command === 'nodes' && positionals.length === 1) return nodes(config, values.json ?? false)
  if ((command === 'drain' || command === 'undrain') && verb && positionals.length === 2) {
    return drain(config, verb, command === 'drain')
  }
  if (command === 'users' && verb === 'link' && name && positionals.length === 3) {
    return users(config, 'link', name, values)
  }
  if (command === 'users' && verb === 'list' && positionals.length === 2) return users(config, 'list', '', values)
  if (command === 'mail' && verb === 'test' && name && positionals.length === 3) return testMail(config, name)
  if (command === 'secrets' && (verb === 'rotate' || verb === 'status')) return secrets(config, verb)
  if (command === 'dnssec' && (verb === undefined || verb === 'on' || verb === 'off')) return dnssec(config, verb)
  if (command === 'backup' && verb && positionals.length === 2) return backup(config, verb)
  if (command === 'restore' && verb && positionals.length === 2) return restore(config, verb)
  if (command === 'jobs' && verb) return jobs(config, verb, positionals.slice(2), values.json ?? false)
  if (command === 'accounts' && verb === 'create' && name) {
    return withStorage(config, async ({ db }) => {
      const { account, token } = await createAccount(db, name)
      console.log(`Account    ${account.id}\nTest key   ${token}`)
    })
  }
  if (command === 'tokens' && verb === 'create' && values.account && values.scopes && values.name) {
    const { account, name } = values
    const scopes = values.scopes.split(',') as Scope[]
    const unknown = scopes.find((scope) => !tokenScopes.includes(scope))
    if (unknown !== undefined) throw new UsageError(`There is no scope ${unknown}. Use ${tokenScopes.join(', ')}.`)
    return withStorage(config, async ({ db }) => {
      const { id: accountId } = await accountOf(db, account)
      const { id, secret } = await insertToken(db, { accountId, name, scopes, projectIds: [], expiresAt: null })
      console.log(`Token      ${id}\nSecret     ${secret}`)
    })
  }
  throw new UsageError(`Unknown command: berth ${args.join(' ')}\n${usageOf(command)}`)
}

/** By id or by name, which is also unique. */
async function accountOf(db: Database, idOrName: string): Promise<{ id: string }> {
  const find = (where: { id: string } | { name: string }) => db.account.findUnique({ where })
  const account = (await find({ id: idOrName })) ?? (await find({ name: idOrName }))
  if (!account) throw new UsageError(`There is no account ${idOrName}.`)
  return account
}

async function migrateDatabase(url: string | undefined): Promise<void> {
  if (!url) throw new UsageError('DATABASE_URL is not set; the embedded database is migrated at every start.')
  const applied = await migrate(url)
  console.log(applied.length > 0 ? `Applied ${applied.join(', ')}.` : 'Nothing to apply.')
}

async function openapi(check: boolean): Promise<void> {
  const guide = 'docs/guides/errors.md'
  const generated = {
    'openapi.yaml': await renderOpenApi(),
    [guide]: withCatalogue(await readFile(guide, 'utf8')),
  }
  for (const [file, text] of Object.entries(generated)) {
    if (!check) await writeFile(file, text)
    else if ((await readFile(file, 'utf8').catch(() => '')) !== text)
      throw new UsageError(`${file} differs from the program; \`npm run openapi\` writes it.`)
  }
}

/** The environment variable that sets a port. */
function portName(port: number | undefined): string {
  const { port: api, metricsPort, edge } = loadConfig(readEnvironment())
  const names = new Map([
    [api, 'PORT'],
    [metricsPort, 'METRICS_PORT'],
    [edge.httpPort, 'EDGE_HTTP_PORT'],
    [edge.httpsPort, 'EDGE_HTTPS_PORT'],
  ])
  return names.get(port ?? -1) ?? 'NAMESERVER_LISTEN'
}

/** One line for an error that the user can fix; a stack trace only for internal errors. */
function explain(error: unknown): string {
  const plain = [UsageError, ConfigError, Fault, BackupError, BadArchive, WrongKey, WorkerFailed]
  if (plain.some((kind) => error instanceof kind)) return (error as Error).message
  const { code, message, port } = error as { code?: string; message?: string; port?: number }
  if (code === 'EADDRINUSE')
    return `Port ${port} is in use; stop the program that listens there, or change ${portName(port)}.`
  if (code === 'ECONNREFUSED') return `The database does not answer at DATABASE_URL (${message}).`
  return message?.includes('already in use') ? message : ((error as Error).stack ?? String(error))
}

export async function berth(args: string[]): Promise<void> {
  try {
    await main(args)
  } catch (error) {
    console.error(`berth: ${explain(error)}`)
    process.exitCode = 1
  }
}
