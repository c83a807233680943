// One role of Berth as a separate process: production's composition root, with a query counter.
import pg from 'pg'
import { loadConfig } from '../../src/config.ts'
import { type Role, run } from '../../src/roles/run.ts'
import { answerParent, type Usage, usage } from '../children.ts'

export type ServerUsage = Usage & { queries: number }

let queries = 0
const { query } = pg.Client.prototype
pg.Client.prototype.query = function counted(this: pg.Client, ...args: unknown[]) {
  queries++
  return query.apply(this, args as never)
} as typeof query

const running = await run(loadConfig(process.env), [process.env.BENCH_ROLE as Role])
answerParent((question: 'usage' | 'memory'): ServerUsage => {
  // Garbage isn't part of the cost of a stream.
  if (question === 'memory') (globalThis as { gc?(): void }).gc?.()
  return { ...usage(), queries }
}, running.stop)
