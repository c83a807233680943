// What an operator watches of the whole platform, as one reading.
import type { Db } from '../../platform/database.ts'
import { selectCertificates, selectQueue } from './statements.ts'

export type QueueFigures = Awaited<ReturnType<typeof selectQueue>>[number]

export type Figures = {
  queue: QueueFigures[]
  certificates: {
    /** Until the first certificate in service expires; null without any. */
    earliestSeconds: number | null
    failing: number
  }
}

export async function readFigures(db: Db): Promise<Figures> {
  const [queue, [certificates]] = await Promise.all([selectQueue(db, {}), selectCertificates(db, {})])
  return { queue, certificates: certificates! }
}
