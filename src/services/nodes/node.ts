// This process among the nodes: its row, a heartbeat every few seconds, and the drain that the operator asks for.
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
  /** New at every start. */
  id: string
  address: string | null
  draining: Draining
  /** Ends the heartbeat and takes the node out of the list. */
  close(): Promise<void>
}

const defaultHeartbeatMs = 5_000
// A database that hangs does not hold up the end of the process.
const goodbyeMs = 1_000

/** Does not wait for the database, which may be away: the next heartbeat is another attempt. */
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
    log.warn(drained ? 'the node drains, as the operator asked' : 'the node takes work again')
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
      // Once the process stops, what the row says comes from here.
      if (!draining.has('stopping')) drain(row!.draining)
    } catch (err) {
      if (!failed) log.warn({ err }, 'the heartbeat of this node cannot be written')
      failed = true
    }
  }

  /** One at a time, and once more if something came up meanwhile. */
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
      const forget = async () => {
        await beating
        await db.node.deleteMany({ where: { id } })
      }
      // Without the database it is shown as lost, and forgotten in time.
      await Promise.race([forget().catch(() => {}), delay(goodbyeMs, undefined, { ref: false })])
    },
  }
}
