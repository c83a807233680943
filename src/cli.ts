#!/usr/bin/env node
// The command line: serve, migrate, accounts, tokens, openapi.
import { readFile, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { migrate } from '../prisma/migrate.ts'
import type { Scope } from './actor.ts'
import { type Config, ConfigError, loadConfig, readEnvironment } from './config.ts'
import { Fault } from './errors.ts'
import { renderOpenApi } from './http/openapi-file.ts'
import { openStorage, type Role, roles, start } from './main.ts'
import { tokenScopes } from './schemas/tokens.ts'
import { createAccount } from './services/accounts.ts'
import { insertToken } from './services/tokens.ts'

const usage = `Usage:
  berth serve [--roles api,worker,edge,nameserver]
  berth migrate                                   apply migrations to DATABASE_URL
  berth accounts create <name>                    print the account id and its test key
  berth tokens create --account <id> --scopes <scope,…> --name <name>     print the secret once
  berth openapi [--check]                         write openapi.yaml, or fail if it differs`

class UsageError extends Error {}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        roles: { type: 'string' },
        account: { type: 'string' },
        scopes: { type: 'string' },
        name: { type: 'string' },
        check: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

async function serve(config: Config, rolesText: string | undefined): Promise<void> {
  const wanted = (rolesText?.split(',') ?? [...roles]) as Role[]
  const unknown = wanted.find((role) => !roles.includes(role))
  if (unknown !== undefined) throw new UsageError(`There is no role ${unknown}; known are ${roles.join(', ')}.`)
  const berth = await start(config, wanted)
  const stopped = Promise.withResolvers<void>()
  let stopping = false
  const end = async (): Promise<void> => {
    // A second Ctrl-C changes nothing: the stop has its own deadline.
    if (stopping) return
    stopping = true
    await berth.stop()
    stopped.resolve()
  }
  process.on('SIGINT', end)
  process.on('SIGTERM', end)
  berth.broken.then(async (reason) => {
    if (stopping) return
    console.error(`berth: ${reason}`)
    process.exitCode = 1
    await end()
  })
  printBanner(config, wanted, berth.testKey)
  await stopped.promise
}

function printBanner(config: Config, wanted: readonly Role[], testKey: string | null): void {
  const api = `${config.baseUrl}/api`
  const path = join(config.dataDir, 'test-key')
  const keyFile = relative('.', path).startsWith('..') ? path : relative('.', path)
  const lines: string[] = []
  if (wanted.includes('api')) lines.push(`API        ${api}      (reference: ${config.baseUrl}/docs)`)
  if (wanted.includes('edge')) {
    const { domain, httpPort, httpsPort } = config.edge
    lines.push(`Edge       http://${domain}:${httpPort}  https://${domain}:${httpsPort}`)
  }
  if (wanted.includes('nameserver')) {
    const listeners = config.nameserverListen.map((address, index) => `${address} (ns${index + 1})`)
    lines.push(`DNS        ${listeners.join('  ')}`)
  }
  if (testKey) lines.push(`Test key   ${testKey}            (also in ${keyFile}, mode 0600)`)
  if (wanted.includes('api') && !config.production) {
    lines.push(`Try        curl -H "Authorization: Bearer $(cat ${keyFile})" ${api}/projects`)
  }
  console.log(lines.join('\n'))
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
  if (values.help || command === undefined) return console.log(usage)
  if (command === 'openapi') return openapi(values.check ?? false)
  const config = loadConfig(readEnvironment())
  if (command === 'serve') return serve(config, values.roles)
  if (command === 'migrate') {
    if (!config.databaseUrl)
      throw new UsageError('DATABASE_URL is not set; the embedded database is migrated at every start.')
    const applied = await migrate(config.databaseUrl)
    return console.log(applied.length > 0 ? `Applied ${applied.join(', ')}.` : 'Nothing to apply.')
  }
  if (command === 'accounts' && verb === 'create' && name) {
    return withStorage(config, async ({ db }) => {
      const { account, token } = await createAccount(db, name)
      console.log(`Account    ${account.id}\nTest key   ${token}`)
    })
  }
  if (command === 'tokens' && verb === 'create' && values.account && values.scopes && values.name) {
    const { account: accountId, name } = values
    const scopes = values.scopes.split(',') as Scope[]
    const unknown = scopes.find((scope) => !tokenScopes.includes(scope))
    if (unknown !== undefined)
      throw new UsageError(`There is no scope ${unknown}; known are ${tokenScopes.join(', ')}.`)
    return withStorage(config, async ({ db }) => {
      if (!(await db.account.findUnique({ where: { id: accountId } })))
        throw new UsageError(`There is no account ${accountId}.`)
      const { id, secret } = await insertToken(db, { accountId, name, scopes, projectIds: [], expiresAt: null })
      console.log(`Token      ${id}\nSecret     ${secret}`)
    })
  }
  throw new UsageError(`Not understood: berth ${args.join(' ')}\n${usage}`)
}

async function openapi(check: boolean): Promise<void> {
  const made = await renderOpenApi()
  if (!check) return writeFile('openapi.yaml', made)
  const committed = await readFile('openapi.yaml', 'utf8').catch(() => '')
  if (committed !== made) throw new UsageError('openapi.yaml differs from the routes; `npm run openapi` writes it.')
}

/** The variable by which a port was given. */
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

/** One clear line for what the person at the terminal can mend; a stack only for what we got wrong. */
function explain(error: unknown): string {
  if (error instanceof UsageError || error instanceof ConfigError || error instanceof Fault) return error.message
  const { code, message, port } = error as { code?: string; message?: string; port?: number }
  if (code === 'EADDRINUSE')
    return `Port ${port} is taken; stop what listens there, or set ${portName(port)} to another.`
  if (code === 'ECONNREFUSED') return `The database does not answer at DATABASE_URL (${message}).`
  return message?.includes('already in use') ? message : ((error as Error).stack ?? String(error))
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  console.error(`berth: ${explain(error)}`)
  process.exitCode = 1
}
