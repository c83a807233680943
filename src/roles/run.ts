// Runs the wanted roles in this process: opens what they share, then each of them, and closes all in reverse.
import { setTimeout as delay } from 'node:timers/promises'
import { destination, pino } from 'pino'
import type { Config } from '../config.ts'
import { Draining } from '../platform/draining.ts'
import { startTracing } from '../platform/tracing.ts'
import { adoptNameservers } from '../services/domains/nameservers.ts'
import { startNode } from '../services/nodes/node.ts'
import { openApi } from './api.ts'
import { createClosing } from './closing.ts'
import { openEdge } from './edge.ts'
import { makeDemo } from './first-start.ts'
import { observeProcess } from './metrics.ts'
import { openNameserver } from './nameserver.ts'
import { openRunner } from './runner.ts'
import { openSandbox } from './sandbox.ts'
import { openSecrets } from './secrets.ts'
import { openShared } from './shared.ts'
import { openWorker } from './worker.ts'

export const roles = ['api', 'worker', 'runner', 'edge', 'nameserver'] as const
export type Role = (typeof roles)[number]

export type Running = {
  /** Set at the first start on an empty database; shown once. */
  testKey: string | null
  /** Resolves with a sentence if something essential, such as the embedded database, ends unexpectedly. */
  broken: Promise<string>
  /** With `drain`, serves for `DRAIN_SECONDS` more, while readiness says that it stops. */
  stop(drain?: boolean): Promise<void>
}

export async function run(config: Config, wanted: readonly Role[]): Promise<Running> {
  const log = pino(
    { level: config.logLevel, redact: ['req.headers.authorization'] },
    destination({ sync: false, minLength: 8_192, periodicFlush: 100 }),
  )
  const closing = createClosing()
  const draining = new Draining()
  const wants = (role: Role) => wanted.includes(role)
  try {
    // First, and so closed last: what closes may still have spans.
    if (config.tracesEndpoint) {
      closing.add(await startTracing({ endpoint: config.tracesEndpoint, roles: wanted, log }))
    }
    const migrates = config.databaseUrl === null || (config.migrate ?? (!config.production || roles.every(wants)))
    const shared = await openShared(config, wanted, { log, closing, draining, migrates })
    const { db, workerDb, urls, broken } = shared
    const background = { ...shared, db: workerDb }
    observeProcess(shared, wanted)
    const node = await startNode(shared, wanted)
    closing.add(() => node.close())
    // Nameservers open no secrets, and may run without the key.
    const sealing = wanted.filter((role) => role !== 'nameserver')
    if (sealing.length > 0) await openSecrets(shared, sealing)
    // Only by the role that gives nameservers out: others may run without this setting.
    if (wants('api')) await adoptNameservers(db, config.nameservers)
    const testKey = config.production || !wants('api') ? null : await makeDemo(db, urls, config)
    // Only what runs untrusted code needs a sandbox.
    const sandboxed = wants('worker') || wants('runner') ? await openSandbox(background, closing) : null
    const runner =
      sandboxed && wants('runner') ? await openRunner({ ...background, ...sandboxed }, node.id, closing) : null
    if (wants('edge')) await openEdge(background, node.id, runner, closing)
    if (wants('nameserver')) await openNameserver(background, closing, wanted.length === 1)
    if (sandboxed && wants('worker')) await openWorker({ ...background, ...sandboxed }, closing)
    if (wants('api')) await openApi(shared, closing)
    shared.started()
    return {
      testKey,
      broken,
      async stop(drain = false) {
        draining.set('stopping', true)
        if (drain) await delay(config.drainSeconds * 1000)
        await closing.closeAll()
      },
    }
  } catch (error) {
    await closing.closeAll().catch(() => {})
    throw error
  }
}
