// The API under test, in a process of its own: the composition root of production with the api role alone.
import { loadConfig } from '../../src/config.ts'
import { start } from '../../src/main.ts'
import { answerParent, usage } from '../children.ts'

const running = await start(loadConfig(process.env), ['api'])
answerParent(usage, running.stop)
