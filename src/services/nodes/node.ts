// Registers this process as a node: writes its heartbeats, and drains it when the operator requests that.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Notifications } from '../../platform/database/notifications.ts'
import { newId } from '../../platform/ids.ts'
import type { Draining } from '../../platform/observe/draining.ts'
import { version } from '../../platform/version.ts'
import type { LoadMeter } from './load.ts'
import { beatNode } from './statements.ts'

export type NodeDeps = {
  config: Pick<Config, 'nodeName' | 'nodeAddress'>
  workerDb: Database
  notifications: Notifications
  log: Logger
  draining: Draining
  load: LoadMeter
}

export type Node = {
  /** Changes at every start. */
  id: string
  address: string | null
  draining: Draining
  /** Stops the heartbeat and deletes the node. */
  close(): Promise<void>
}

const defaultHeartbeatMs = 5_000
// A hanging database must not delay shutdown.
const deleteTimeoutMs = 1_000

/** Does not wait for the database, which may be unavailable: the next heartbeat tries again. */
export async function startNode(
  deps: NodeDeps,
  roles: readonly string[],
  heartbeatMs = defaultHeartbeatMs,
): Promise<Node> {
  const { config, workerDb: db, notifications, log, draining, load } = deps
  const id = newId('nod')
  const self = { id, name: config.nodeName, roles: [...roles].sort(), version, address: config.nodeAddress }
  const startedMs = performance.now()
  let beating: Promise<void> | null = null
  let failed = false
  let closed = false
  let again = false

  function drain(drained: boolean): void {
    if (drained === draining.has('drained')) return
    log.warn(drained ? 'draining the node at the request of the operator' : 'the node accepts work again')
    draining.set('drained', drained)
  }

  async function write(): Promise<void> {
    const stopping = draining.has('stopping')
    try {
      const ageSeconds = Math.floor((performance.now() - startedMs) / 1000)
      const drained = draining.has('drained')
      const [row] = await beatNode(db, { ...self, load: load.read(), ageSeconds, drained, stopping })
      if (failed) log.info('the heartbeat of this node is written again')
      failed = false
      // During shutdown, this process itself has set `draining` in the row.
      if (!draining.has('stopping')) drain(row!.draining)
    } catch (err) {
      if (!failed) log.warn({ err }, 'the heartbeat of this node cannot be written')
      failed = true
    }
  }

  /** Runs one heartbeat at a time, and another one if requested in the meantime. */
  function beat(): void {
    if (closed) return
    if (beating) {
      again = true
      return
    }
    beating = write().finally(() => {
      beating = null
      if (again) beat()
    })
    again = false
  }

  const timer = setInterval(beat, heartbeatMs)
  timer.unref()
  draining.addEventListener('abort', beat)
  const off = notifications.on('node', (changed) => changed === id && beat())
  beat()
  return {
    id,
    address: config.nodeAddress,
    draining,
    async close() {
      closed = true
      clearInterval(timer)
      off()
      draining.removeEventListener('abort', beat)
      const remove = async () => {
        await beating
        await db.node.deleteMany({ where: { id } })
      }
      // If this fails, the node appears as lost and is deleted later.
      await Promise.race([remove().catch(() => {}), delay(deleteTimeoutMs, undefined, { ref: false })])
    },
  }
}
