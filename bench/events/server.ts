// One role of Berth in a process of its own: the composition root of production.
import { loadConfig } from '../../src/config.ts'
import { type Role, start } from '../../src/main.ts'
import { answerParent, usage } from '../children.ts'

const running = await start(loadConfig(process.env), [process.env.BENCH_ROLE as Role])
answerParent((question: 'usage' | 'memory') => {
  // What is garbage is not what a stream costs.
  if (question === 'memory') (globalThis as { gc?(): void }).gc?.()
  return usage()
}, running.stop)
