// The platform under test, a separate process: production's composition root with the roles in BENCH_ROLES.
import cluster from 'node:cluster'
import { loadConfig } from '../src/config.ts'
import { serveWorker } from '../src/roles/cluster-worker.ts'
import { type Role, run } from '../src/roles/run.ts'
import { answerParent, usage } from './children.ts'

const config = loadConfig(process.env)
if (cluster.isWorker) await serveWorker(config)
else {
  const running = await run(config, process.env.BENCH_ROLES!.split(',') as Role[], { workers: config.workers })
  answerParent(
    (question: string) => (question === 'token' ? running.testKey : usage()),
    () => running.stop(),
  )
}
