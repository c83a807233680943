// The platform under test, in a process of its own: the composition root of production with the roles that a deployment takes.
import { loadConfig } from '../../src/config.ts'
import { start } from '../../src/main.ts'
import { answerParent } from '../children.ts'

const running = await start(loadConfig(process.env), ['api', 'worker', 'edge'])
answerParent(() => running.testKey, running.stop)
