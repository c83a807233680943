// The API under test, in a process of its own: the composition root of production with the api role alone.
import cluster from 'node:cluster'
import { loadConfig } from '../../src/config.ts'
import { serveWorker } from '../../src/roles/cluster/worker.ts'
import { run } from '../../src/roles/run.ts'
import { answerParent, usage } from '../children.ts'

const config = loadConfig(process.env)
if (cluster.isWorker) await serveWorker(config)
else {
  const running = await run(config, ['api'], { workers: config.workers })
  answerParent(usage, () => running.stop())
}
