// The API under test, in a process of its own: the composition root of production with the api role alone.
import { loadConfig } from '../../src/config.ts'
import { run } from '../../src/roles/run.ts'
import { answerParent, usage } from '../children.ts'

const running = await run(loadConfig(process.env), ['api'])
answerParent(usage, running.stop)
