// Runs roles in this process: opens what they share, then each of them, and closes everything in reverse.
import { setTimeout as delay } from 'node:timers/promises'
import { destination, pino } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from '../config.ts'
import { Draining, type DrainReason } from '../platform/observe/draining.ts'
import type { Health } from '../platform/observe/health.ts'
import { createQuieting } from '../platform/observe/quiet-log.ts'
import type { Terminal } from '../platform/observe/terminal.ts'
import { startTracing } from '../platform/observe/tracing.ts'
import { adoptNameservers } from '../services/domains/index.ts'
import { type LoadMeter, startNode } from '../services/nodes/index.ts'
import type { TicketKeys } from '../tls/tickets.ts'
import { openApi } from './api.ts'
import { openCluster } from './cluster/open.ts'
import { openEdge } from './edge.ts'
import { observeProcess } from './metrics.ts'
import { openNameserver } from './nameserver.ts'
import { type Closing, createClosing } from './opening/closing.ts'
import { createDemo, linkToDemo } from './opening/first-start.ts'
import { rolesOfWorkers, type Start } from './opening/messages.ts'
import { refuseTakenPorts } from './opening/ports.ts'
import { openSecrets } from './opening/secrets.ts'
import { openShared, type Shared } from './opening/shared.ts'
import { openRunner } from './runner.ts'
import { openSandbox, type Sandboxed } from './sandbox.ts'
import { openWorker } from './worker.ts'

export const roles = ['api', 'worker', 'runner', 'edge', 'nameserver'] as const
export type Role = (typeof roles)[number]

export type Running = {
  /** Set on the first start with an empty database; shown once. */
  testKey: string | null
  /** Makes the first person who opens it the owner of the demo account; null once that account has a member. */
  setupUrl: string | null
  /** Resolves with a sentence if something essential, such as the embedded database, exits unexpectedly. */
  broken: Promise<string>
  registry: Registry
  health: Health
  tickets: TicketKeys
  draining: Draining
  load: LoadMeter
  /** Replaces worker processes one by one; null without any. */
  replaceWorkers: (() => Promise<void>) | null
  /** With `drain`, serves for `DRAIN_SECONDS` more while readiness reports the shutdown, unless it was replaced. */
  stop(drain?: boolean, reason?: DrainReason): Promise<void>
}

export type RunOptions = {
  /** Worker processes for api and edge; 0: this process runs every role itself. */
  workers?: number
  /** Set in a worker process: the primary runs what a server has only once. */
  worker?: Start
  /** Gets log lines and the current activity; null: log lines are JSON on standard output. */
  terminal?: Terminal | null
}

// Lines are written in larger chunks. Processes that share a pipe write smaller ones, so that no line is torn apart.
const buffered = { sync: false, minLength: 8_192, periodicFlush: 100 }
const unbroken = { ...buffered, minLength: 2_048, maxWrite: 4_096 }

/** The row of this process among the nodes; worker processes have none. */
async function openNode(shared: Shared, selected: readonly Role[], closing: Closing): Promise<string> {
  const node = await startNode(shared, selected)
  closing.add(() => node.close())
  return node.id
}

export async function run(
  config: Config,
  selected: readonly Role[],
  { workers = 0, worker, terminal = null }: RunOptions = {},
): Promise<Running> {
  const inWorkers = (role: Role) => workers > 0 && rolesOfWorkers.includes(role)
  const output = terminal ?? destination(worker || workers > 0 ? unbroken : buffered)
  const hooks = { logMethod: createQuieting() }
  const log = pino({ level: config.logLevel, redact: ['req.headers.authorization'], hooks }, output)
  const closing = createClosing()
  const draining = new Draining()
  /** Of this server, and of this process. */
  const wants = (role: Role) => selected.includes(role)
  const runs = (role: Role) => wants(role) && !inWorkers(role)
  let sandboxing: Promise<Sandboxed> | null = null
  try {
    if (config.databaseUrl === null && !worker) await refuseTakenPorts(config, selected)
    // Only roles that run untrusted code need a sandbox. Its setup tries programs out, so it runs while the database
    // starts.
    if (runs('worker') || runs('runner')) {
      sandboxing = openSandbox({ config, log }, closing)
      sandboxing.catch(() => {})
    }
    // Opened first and so closed last: closing the rest may still create spans.
    if (config.tracesEndpoint) {
      closing.add(await startTracing({ endpoint: config.tracesEndpoint, roles: selected, log }))
    }
    const migratesByDefault = config.migrate ?? (!config.production || roles.every(wants))
    const migrates = !worker && (config.databaseUrl === null || migratesByDefault)
    const shared = await openShared(config, selected, { log, closing, draining, migrates, worker, terminal })
    const { db, workerDb, urls, broken, registry, health, tickets, load } = shared
    const background = { ...shared, db: workerDb }
    observeProcess(shared, worker?.roles ?? selected)
    const node = worker?.node ?? (await openNode(shared, selected, closing))
    // Nameservers decrypt no secrets, and may run without the key.
    const sealing = selected.filter((role) => role !== 'nameserver')
    if (sealing.length > 0) await openSecrets(shared, sealing)
    // Only in the role that assigns nameservers: others may run without this setting.
    if (wants('api') && !worker) await adoptNameservers(db, config.nameservers)
    const testKey = config.production || worker || !wants('api') ? null : await createDemo(db, urls, config)
    const setupUrl = config.production || worker || !wants('api') ? null : await linkToDemo(db, config.baseUrl)
    const sandboxed = await sandboxing
    const runner = sandboxed && runs('runner') ? await openRunner({ ...background, ...sandboxed }, node, closing) : null
    if (runs('edge')) await openEdge(background, node, runner, closing)
    if (runs('nameserver')) await openNameserver(background, closing, selected.length === 1)
    if (sandboxed && runs('worker')) await openWorker({ ...background, ...sandboxed }, closing)
    if (runs('api')) await openApi(shared, closing)
    const cluster = selected.some(inWorkers)
      ? await openCluster(shared, { roles: selected, node, count: workers }, closing)
      : null
    shared.started()
    return {
      testKey,
      setupUrl,
      broken,
      registry,
      health,
      tickets,
      draining,
      load,
      replaceWorkers: cluster && (() => cluster.replaceAll()),
      async stop(drain = false, reason = 'stopping') {
        draining.set(reason, true)
        await Promise.all([drain && delay(config.drainSeconds * 1000), cluster?.stop(drain)])
        await closing.closeAll()
      },
    }
  } catch (error) {
    await sandboxing?.catch(() => {})
    await closing.closeAll().catch(() => {})
    throw error
  }
}
