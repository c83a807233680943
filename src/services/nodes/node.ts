// This process among the nodes: its row, a heartbeat every few seconds, and the drain that the operator asks for.
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import type { Database } from '../../platform/database.ts'
import type { Draining } from '../../platform/draining.ts'
import { newId } from '../../platform/ids.ts'
import { version } from '../../platform/version.ts'
import type { LoadMeter } from './load.ts'
import { beatNode } from './statements.ts'

export type NodeDeps = {
  config: Pick<Config, 'nodeName' | 'nodeAddress'>
  workerDb: Database
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

const heartbeatMs = 5_000

/** Does not wait for the database, which may be away: the next heartbeat is another attempt. */
export async function startNode(deps: NodeDeps, roles: readonly string[]): Promise<Node> {
  const { config, workerDb: db, log, draining, load } = deps
  const id = newId('nod')
  const self = { id, name: config.nodeName, roles: [...roles].sort(), version, address: config.nodeAddress }
  let beating: Promise<void> | null = null
  let failed = false
  let closed = false

  async function write(): Promise<void> {
    const stopping = draining.has('stopping')
    try {
      const [row] = await beatNode(db, { ...self, load: load.read(), drained: draining.has('drained'), stopping })
      if (failed) log.info('the heartbeat of this node is written again')
      failed = false
      // What was asked before the process stops does not matter any more.
      if (!draining.has('stopping')) draining.set('drained', row!.draining)
    } catch (err) {
      if (!failed) log.warn({ err }, 'the heartbeat of this node cannot be written')
      failed = true
    }
  }

  /** One at a time, also if the database takes longer than the time between two. */
  async function beat(): Promise<void> {
    if (closed) return
    beating ??= write().finally(() => {
      beating = null
    })
    await beating
  }

  const timer = setInterval(beat, heartbeatMs)
  timer.unref()
  draining.addEventListener('abort', () => void beat())
  void beat()
  return {
    id,
    address: config.nodeAddress,
    draining,
    async close() {
      closed = true
      clearInterval(timer)
      await beating
      // Without the database it is shown as lost, and forgotten in time.
      await db.node.deleteMany({ where: { id } }).catch(() => {})
    },
  }
}
