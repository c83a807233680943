// Platform-wide figures for operators: the queue, certificates and nodes.
import type { Db } from '../../platform/database/database.ts'
import { countNodes } from '../nodes/index.ts'
import { selectCertificates, selectQueue } from './statements.ts'

export type QueueFigures = Awaited<ReturnType<typeof selectQueue>>[number]

export type Figures = {
  queue: QueueFigures[]
  certificates: {
    /** Time until the first certificate in service expires; null if there are none. */
    earliestSeconds: number | null
    failing: number
  }
  /** The number of nodes in each state. */
  nodes: Record<'active' | 'draining' | 'lost', number>
}

export async function readFigures(db: Db): Promise<Figures> {
  const [queue, [certificates], [nodes]] = await Promise.all([
    selectQueue(db, {}),
    selectCertificates(db, {}),
    countNodes(db, {}),
  ])
  return { queue, certificates: certificates!, nodes: nodes! }
}
