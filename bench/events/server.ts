// One role of Berth in a process of its own: the composition root of production, with its queries counted.
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
  // What is garbage is not what a stream costs.
  if (question === 'memory') (globalThis as { gc?(): void }).gc?.()
  return { ...usage(), queries }
}, running.stop)
