// A Berth that the test kills: starts a sandboxed command that would run for ever, and says so.
import { createSandbox } from '../../src/sandbox/sandbox.ts'

type Arguments = [string, string, string, 'bubblewrap' | 'none', 'pid-namespace' | 'marker' | undefined]
const [runDirectory, workTree, sleep, mode, containment] = process.argv.slice(2) as Arguments
const sandbox = await createSandbox(mode, { searchPath: process.env.PATH ?? '', runDirectory, containment })
sandbox.run({
  argv: ['/bin/sh', '-c', `trap '' TERM; setsid ${sleep} & echo started; ${sleep}`],
  workTree,
  environment: {},
  limits: { memoryMb: 256, processes: 64, timeoutMs: Number.POSITIVE_INFINITY },
  network: { reach: 'public', private: ['localhost:1'] },
  listen: {},
  onOutput: (_stream, chunk) => process.stdout.write(chunk),
})
