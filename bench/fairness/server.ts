// The platform under test, in a process of its own: the composition root of production with all roles.
import { loadConfig } from '../../src/config.ts'
import { run } from '../../src/roles/run.ts'
import { answerParent, usage } from '../children.ts'

const running = await run(loadConfig(process.env), ['api', 'worker', 'edge', 'nameserver'])
answerParent((question: string) => (question === 'token' ? running.testKey : usage()), running.stop)
