// A worker process of `--workers`: runs the roles that it is told to, answers the primary, and leaves when told to.
import cluster from 'node:cluster'
import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../config.ts'
import type { Health } from '../platform/observe/health.ts'
import { openStandardOutput } from '../platform/observe/terminal.ts'
import { type Answers, type FromWorker, rolesOfWorkers, type Start, type ToWorker } from './opening/messages.ts'
import { type Role, type Running, run } from './run.ts'

/** What is configured for the server is divided among its workers. */
export function configOfWorker(config: Config, { count, databaseUrl }: Pick<Start, 'count' | 'databaseUrl'>): Config {
  const part = (whole: number, least = 1) => Math.min(whole, Math.max(least, Math.ceil(whole / count)))
  return {
    ...config,
    databaseUrl,
    databasePool: part(config.databasePool, 4),
    databaseWorkerPool: part(config.databaseWorkerPool, 4),
    maxInFlight: part(config.maxInFlight),
    maxInFlightPerAccount: part(config.maxInFlightPerAccount),
    maxWaits: part(config.maxWaits),
    maxStreams: part(config.maxStreams),
  }
}

// As often as the row of a node is written.
const loadMs = 5_000
// The next connection may go to another worker.
const askAgainMs = 20

/** Resolves when the process has closed everything, and may end. */
export async function serveWorker(config: Config): Promise<void> {
  // Ctrl-C and the end of a terminal reach the whole group; the primary says what follows.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
  // The primary is gone: this process ends when it hears that the channel is closed.
  cluster.worker?.on('error', () => {})
  const started = Promise.withResolvers<Start>()
  const stopping = Promise.withResolvers<{ drain: boolean; replaced: boolean }>()
  let running: Running | null = null
  // systemd tells every process of a unit to end.
  process.on('SIGTERM', () => stopping.resolve({ drain: true, replaced: false }))
  process.on('message', (message: ToWorker) => {
    if (message.kind === 'start') started.resolve(message)
    else if (message.kind === 'stop') stopping.resolve(message)
    else if (message.kind === 'ticketKey') running?.tickets.replace(Buffer.from(message.key, 'base64'))
    else if (message.kind === 'drained') running?.draining.set('drained', message.drained)
    else if (running) void answer(running, message)
  })
  try {
    const start = await started.promise
    const roles = start.roles.filter((role) => rolesOfWorkers.includes(role)) as Role[]
    running = await run(configOfWorker(config, start), roles, { worker: start, terminal: openStandardOutput(config) })
    running.draining.set('drained', start.drained)
    const { load } = running
    setInterval(() => tell({ kind: 'load', load: load.read() }), loadMs).unref()
    // Only then another one may leave in its place.
    while (!(await hasAnswered(running.health, roles)) && !(await Promise.race([stopping.promise, delay(askAgainMs)])));
    tell({ kind: 'ready' })
    const { drain, replaced } = await stopping.promise
    await running.stop(drain, replaced ? 'replaced' : 'stopping')
    tell({ kind: 'last', metrics: await running.registry.getMetricsAsJSON() })
  } finally {
    // Nothing else keeps it alive.
    process.channel?.unref()
  }
}

/** The check of a role is by its name, and asks the role for an answer by its own listener. */
async function hasAnswered(health: Health, roles: readonly Role[]): Promise<boolean> {
  const { checks } = await health.check()
  return roles.every((role) => checks[role] === 'ok')
}

async function answer({ registry, health }: Running, { id, what, role }: Extract<ToWorker, { kind: 'ask' }>) {
  const value: Answers[keyof Answers] =
    what === 'metrics' ? await registry.getMetricsAsJSON() : await health.check(role)
  tell({ kind: 'answer', id, value })
}

function tell(message: FromWorker): void {
  // The primary may be gone; this process ends then.
  if (process.connected) process.send!(message, () => {})
}
