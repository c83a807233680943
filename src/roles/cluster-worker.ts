// A worker process of `--workers`: runs its roles, answers the primary, and shuts down when told to.
import cluster from 'node:cluster'
import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../config.ts'
import type { Health } from '../platform/observe/health.ts'
import { openStandardOutput } from '../platform/observe/terminal.ts'
import { type Answers, type FromWorker, rolesOfWorkers, type Start, type ToWorker } from './opening/messages.ts'
import { type Role, type Running, run } from './run.ts'

/** Divides what is configured for the server among its workers. */
export function configOfWorker(config: Config, { count, databaseUrl }: Pick<Start, 'count' | 'databaseUrl'>): Config {
  const part = (whole: number, min = 1) => Math.min(whole, Math.max(min, Math.ceil(whole / count)))
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

// As often as the node's row is written.
const loadMs = 5_000
// The next connection may go to another worker.
const retryMs = 20

/** Resolves when the process has closed everything and may exit. */
export async function serveWorker(config: Config): Promise<void> {
  // Ctrl-C and a closed terminal reach the whole group; the primary decides what follows.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
  // The primary is gone: this process exits once its channel closes.
  cluster.worker?.on('error', () => {})
  const started = Promise.withResolvers<Start>()
  const stopping = Promise.withResolvers<{ drain: boolean; replaced: boolean }>()
  let running: Running | null = null
  // systemd sends SIGTERM to every process of a unit.
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
    setInterval(() => send({ kind: 'load', load: load.read() }), loadMs).unref()
    // Only once it answers may another worker leave in its place.
    while (!(await hasAnswered(running.health, roles)) && !(await Promise.race([stopping.promise, delay(retryMs)])));
    send({ kind: 'ready' })
    const { drain, replaced } = await stopping.promise
    await running.stop(drain, replaced ? 'replaced' : 'stopping')
    send({ kind: 'last', metrics: await running.registry.getMetricsAsJSON() })
  } finally {
    // Nothing else keeps the process alive.
    process.channel?.unref()
  }
}

/** Each role's check sends a request through its own listener. */
async function hasAnswered(health: Health, roles: readonly Role[]): Promise<boolean> {
  const { checks } = await health.check()
  return roles.every((role) => checks[role] === 'ok')
}

async function answer({ registry, health }: Running, { id, what, role }: Extract<ToWorker, { kind: 'ask' }>) {
  const value: Answers[keyof Answers] =
    what === 'metrics' ? await registry.getMetricsAsJSON() : await health.check(role)
  send({ kind: 'answer', id, value })
}

function send(message: FromWorker): void {
  // If the primary is gone, this process exits soon.
  if (process.connected) process.send!(message, () => {})
}
