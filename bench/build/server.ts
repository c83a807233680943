// The platform under test, in a process of its own: the composition root of production with the roles that a deployment takes.
import { loadConfig } from '../../src/config.ts'
import { run } from '../../src/roles/run.ts'
import { answerParent } from '../children.ts'

const running = await run(loadConfig(process.env), ['api', 'worker', 'runner', 'edge'])
answerParent(() => running.testKey, running.stop)
