// Commands that end by neither their own doing nor their limits: the machine had no memory left, or somebody killed them.
import { afterAll, describe, expect } from 'vitest'
import { SandboxLost } from '../../src/sandbox/sandbox.ts'
import { until } from '../helpers/until.ts'
import {
  bubblewrap,
  bubblewrapTest,
  cleanUp,
  command,
  limitRuns,
  limits,
  openSandbox,
  processesWith,
  run,
  uniqueSleep,
} from './sandboxes.ts'

afterAll(cleanUp)

const allocate = (megabytes: number) =>
  `node -e "const all = []; for (let i = 0; i < ${megabytes}; i++) all.push(Buffer.alloc(1 << 20, 1))"`

describe('a command', () => {
  bubblewrapTest('that the machine has no memory for is lost, not out of its own memory', async ({ skip }) => {
    const { sandbox } = await openSandbox('bubblewrap')
    if (!limitRuns(120)) return skip('no control groups can be made here')
    const ended = run(sandbox, `${allocate(300)}; exit 1`, { limits: { ...limits, memoryMb: 1024 } })
    await expect(ended).rejects.toThrow(SandboxLost)
    await expect(ended).rejects.toThrow('out of memory')
    // Its own limit is lower, and is what it runs into.
    limitRuns(2048)
    const own = await run(sandbox, allocate(300), { limits: { ...limits, memoryMb: 128 } })
    expect(own).toMatchObject({ reason: 'memory' })
    await sandbox.close()
  })

  bubblewrapTest('whose sandbox somebody kills is lost', async () => {
    const sleep = uniqueSleep()
    const running = await command(`echo running; ${sleep}`)
    const started = (await bubblewrap()).run(running)
    started.exited.catch(() => {})
    // Bubblewrap's children die with it only once they have started.
    await until(() => running.output.stdout.includes('running'))
    // Bubblewrap's processes too: everything that has the command in its arguments.
    for (const pid of processesWith(sleep)) {
      try {
        process.kill(Number(pid), 'SIGKILL')
      } catch {
        // It ended with another.
      }
    }
    await expect(started.exited).rejects.toThrow(SandboxLost)
  })

  bubblewrapTest('that is killed in its sandbox tells the signal: who sent it is not known', async () => {
    const result = await run(await bubblewrap(), 'kill -9 $$')
    expect(result).toMatchObject({ code: 137, signal: 'SIGKILL', reason: 'exit' })
  })
})
