// What an operator watches of the whole platform, as one reading.
import type { Db } from '../../platform/database/database.ts'
import { countNodes } from '../nodes/index.ts'
import { selectCertificates, selectQueue } from './statements.ts'

export type QueueFigures = Awaited<ReturnType<typeof selectQueue>>[number]

export type Figures = {
  queue: QueueFigures[]
  certificates: {
    /** Until the first certificate in service expires; null without any. */
    earliestSeconds: number | null
    failing: number
  }
  /** How many there are in each state. */
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
