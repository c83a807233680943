// A runner: leases instances in the database, runs those that are given to it, and tells in what state they are.
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
import type { Lane } from '../proxy/visits.ts'
import type { Servers, ServersOptions } from './servers.ts'
import { createTenures } from './tenures.ts'

export type RunnerDeps = {
  db: Database
  notifications: Notifications
  node: RunnerNode
  /** No other process uses the database, so whatever ran before is gone. */
  alone: boolean
  /** Aborted when the process begins to stop or is drained: others take its instances over, which it serves until then. */
  draining: DrainSignal
  log: Logger
  /** Where what this node holds is kept for a start without the database. */
  snapshots?: Snapshots | undefined
  leaseMs?: number
  /** How long edges have to follow before an instance of the deployment that was replaced is stopped. */
  handoverMs?: number
}

export type Runner = {
  readonly node: string
  /** The way to an instance for requests of this process; null if this node does not have it. */
  lane(key: string): Lane | null
  /** The same for requests of another process. */
  connect(key: string): Promise<Socket | null>
  /** How many instances it has. */
  count(): number
  /** For health. */
  readiness(): string | null
  close(): Promise<void>
}

// Changes of these may change what is to run.
const relevant = new Set([
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
// A lease outlives some that come late or fail.
const beatsPerLease = 5

/** `start` gets whom the servers tell of their states. */
export async function openRunner(
  deps: RunnerDeps,
  start: (onState: NonNullable<ServersOptions['onState']>) => Servers,
): Promise<Runner> {
  const { db, notifications, node, alone, draining, log, leaseMs = runnerLeaseMs } = deps
  const servers = start((...change) => tenures.onState(...change))
  const tenures = createTenures({ ...deps, servers })
  let held: HeldInstance[] = []
  const kept = deps.snapshots?.open('held-instances', () => held)
  let begun = false
  let lastMs = Number.NEGATIVE_INFINITY
  let steadySinceMs = 0
  let failing = false
  let closed = false
  let running: Promise<unknown> = Promise.resolve()

  /** After a pause of its own, such as an outage of the database, others have had no chance to renew their leases yet. */
  function maySeize(): boolean {
    const nowMs = performance.now()
    if (nowMs - lastMs > leaseMs / 2) steadySinceMs = nowMs
    lastMs = nowMs
    return alone || nowMs - steadySinceMs > leaseMs
  }

  async function work(): Promise<void> {
    if (closed) return
    if (!begun) await beginRunner(db, node, alone)
    begun = true
    const { unplaced, orphaned } = await renew(db, node, draining.aborted, leaseMs)
    const seizes = maySeize()
    if (unplaced || (orphaned && seizes)) await placeInstances(db, seizes)
    else if (seizes && !draining.aborted) await spreadInstance(db, { node: node.id })
    held = await readHeld(db, node.id)
    tenures.follow(held)
    kept?.changed()
    kept?.current()
  }

  /** One at a time, in order. */
  function beat(first: () => Promise<unknown> = async () => {}): Promise<void> {
    const next = running.then(first).then(work)
    running = next.catch(() => {})
    return next
  }

  /** While the database is away, what runs goes on. */
  async function beatSafely(): Promise<void> {
    try {
      await beat()
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
        notifications.on('event', ({ type, subject }) => void (relevant.has(type) && changed(subject))),
      ]
      return () => {
        for (const stop of off) stop()
      }
    },
    async compare() {
      await beat(() => wantProduction(db, { subjects: null }))
      return []
    },
    read: (subjects: string[]) => beat(() => wantProduction(db, { subjects })),
    /** Until the database is back, this node runs what it had; then it is placed anew. */
    async restore() {
      await kept?.restore<HeldInstance>((rows) => tenures.follow(rows.filter(({ duty }) => duty !== 'prove')))
      return true
    },
  }
  const following = await follow(source, notifications, log)
  const beating = setInterval(() => void beatSafely(), leaseMs / beatsPerLease)
  function handOver(): void {
    beat(async () => {
      await renew(db, node, true, leaseMs)
      await leaveNode(db, { node: node.id })
    }).catch((err) => log.warn({ err }, 'the instances of this runner could not be handed over'))
  }
  draining.addEventListener('abort', handOver)

  return {
    node: node.id,
    lane: tenures.lane,
    count: tenures.count,
    connect: async (key) => (tenures.lane(key) ? servers.connect(key) : null),
    readiness: () => (performance.now() - lastMs > leaseMs ? 'The lease of this runner could not be renewed.' : null),
    async close() {
      draining.removeEventListener('abort', handOver)
      clearInterval(beating)
      await following.close()
      closed = true
      await running
      await servers.close()
      await kept?.close()
      await endRunner(db, node).catch((err) => log.warn({ err }, 'the lease of this runner ends by itself'))
    },
  }
}
