// A runner: renews its lease in the database, runs the instances assigned to it, and reports their states.
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import type { Database } from '../../../platform/database/database.ts'
import { follow } from '../../../platform/database/mirror.ts'
import type { Notifications } from '../../../platform/database/notifications.ts'
import type { Snapshots } from '../../../platform/database/snapshots.ts'
import type { DrainSignal } from '../../../platform/observe/draining.ts'
import {
  beginRunner,
  endRunner,
  type HeldInstance,
  leaveNode,
  placeInstances,
  type RunnerNode,
  readHeld,
  renew,
  runnerLeaseMs,
  spreadInstance,
  wantProduction,
} from '../../../services/instances/index.ts'
import type { Backend } from '../proxy/dispatcher.ts'
import { createAssignments } from './assignments.ts'
import type { Servers, ServersOptions } from './servers.ts'

export type RunnerDeps = {
  db: Database
  notifications: Notifications
  node: RunnerNode
  /** Whether no other process uses the database, so that all earlier runners are gone. */
  isOnlyProcess: boolean
  /** Aborted when the process shuts down or drains. It serves its instances until others have taken over. */
  draining: DrainSignal
  log: Logger
  /** Stores the assigned instances for starts without the database. */
  snapshots?: Snapshots | undefined
  leaseMs?: number
  /** How long edges have to react before a replaced instance is stopped. */
  handoverMs?: number
}

export type Runner = {
  readonly node: string
  /** An instance, for requests of this process; null if it isn't on this node. */
  backend(key: string): Backend | null
  /** Connects requests of another process to an instance; null if it isn't on this node. */
  connect(key: string): Promise<Socket | null>
  /** The number of assigned instances. */
  count(): number
  /** A problem to report in the health check, or null. */
  readiness(): string | null
  close(): Promise<void>
}

// Events that may change which instances should run.
const relevantEvents = new Set([
  ...[
    'deployment.ready',
    'deployment.error',
    'deployment.canceled',
    'deployment.promoted',
    'deployment.served',
    'deployment.deleted',
  ],
  ...['project.updated', 'project.deleted', 'account.suspended', 'account.resumed'],
  ...['takedown.created', 'takedown.ended'],
])
// A lease survives a few late or failed renewals.
const renewalsPerLease = 5

/** `start` creates the servers, which report their states to `onState`. */
export async function openRunner(
  deps: RunnerDeps,
  start: (onState: NonNullable<ServersOptions['onState']>) => Servers,
): Promise<Runner> {
  const { db, notifications, node, isOnlyProcess, draining, log, leaseMs = runnerLeaseMs } = deps
  const servers = start((...change) => assignments.onState(...change))
  const assignments = createAssignments({ ...deps, servers })
  let held: HeldInstance[] = []
  const store = deps.snapshots?.open('held-instances', () => held)
  let isRegistered = false
  let lastMs = Number.NEGATIVE_INFINITY
  let steadySinceMs = 0
  let failing = false
  let closed = false
  let running: Promise<unknown> = Promise.resolve()

  /** After a database outage or a pause of this process, the others first need a chance to renew their leases. */
  function mayTakeOver(): boolean {
    const nowMs = performance.now()
    if (nowMs - lastMs > leaseMs / 2) steadySinceMs = nowMs
    lastMs = nowMs
    return isOnlyProcess || nowMs - steadySinceMs > leaseMs
  }

  async function work(): Promise<void> {
    if (closed) return
    if (!isRegistered) await beginRunner(db, node, isOnlyProcess)
    isRegistered = true
    const { unplaced, orphaned } = await renew(db, node, draining.aborted, leaseMs)
    const takesOver = mayTakeOver()
    if (unplaced || (orphaned && takesOver)) await placeInstances(db, takesOver)
    else if (takesOver && !draining.aborted) await spreadInstance(db, { node: node.id })
    held = await readHeld(db, node.id)
    assignments.follow(held)
    store?.changed()
    store?.current()
  }

  /** Runs one at a time, in order. */
  function renewLease(first: () => Promise<unknown> = async () => {}): Promise<void> {
    const next = running.then(first).then(work)
    running = next.catch(() => {})
    return next
  }

  /** While the database is unavailable, instances keep running. */
  async function renewLeaseSafely(): Promise<void> {
    try {
      await renewLease()
      failing = false
    } catch (err) {
      if (!failing) log.warn({ err }, 'the lease of this runner could not be renewed; its instances go on')
      failing = true
    }
  }

  const source = {
    what: 'wanted instances',
    listen(changed: (subject: string) => void) {
      const off = [
        notifications.on('instance', changed),
        notifications.on('event', ({ type, subject }) => void (relevantEvents.has(type) && changed(subject))),
      ]
      return () => {
        for (const stop of off) stop()
      }
    },
    async compare() {
      await renewLease(() => wantProduction(db, { subjects: null }))
      return []
    },
    read: (subjects: string[]) => renewLease(() => wantProduction(db, { subjects })),
    /** Runs the previous instances until the database is back. */
    async restore() {
      await store?.restore<HeldInstance>((rows) => assignments.follow(rows.filter(({ duty }) => duty !== 'prove')))
      return true
    },
  }
  const mirror = await follow(source, notifications, log)
  const timer = setInterval(() => void renewLeaseSafely(), leaseMs / renewalsPerLease)
  function handOver(): void {
    renewLease(async () => {
      await renew(db, node, true, leaseMs)
      await leaveNode(db, { node: node.id })
    }).catch((err) => log.warn({ err }, 'the instances of this runner could not be handed over'))
  }
  draining.addEventListener('abort', handOver)

  return {
    node: node.id,
    backend: assignments.backend,
    count: assignments.count,
    connect: async (key) => (assignments.backend(key) ? servers.connect(key) : null),
    readiness: () => (performance.now() - lastMs > leaseMs ? 'The lease of this runner could not be renewed.' : null),
    async close() {
      draining.removeEventListener('abort', handOver)
      clearInterval(timer)
      await mirror.close()
      closed = true
      await running
      await servers.close()
      await store?.close()
      await endRunner(db, node).catch((err) =>
        log.warn({ err }, 'the lease of this runner could not be ended; it will expire'),
      )
    },
  }
}
