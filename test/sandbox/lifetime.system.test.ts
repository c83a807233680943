import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect } from 'vitest'
import { until } from '../helpers/until.ts'
import {
  bubblewrap,
  cleanUp,
  command,
  controlGroups,
  directory,
  internet,
  openSandbox,
  processesWith,
  run,
  bubblewrapTest as test,
  uniqueSleep,
} from './sandboxes.ts'

afterAll(cleanUp)
const root = join(import.meta.dirname, '../..')

describe('kill', () => {
  test('ends a grandchild in its own session that ignores SIGTERM, and resolves when all is gone', async () => {
    const sleep = uniqueSleep()
    const daemon = `trap "" TERM; (setsid sh -c "trap \\"\\" TERM; ${sleep} & ${sleep}" &) ; echo ready; ${sleep}`
    const asked = await command(daemon)
    const started = (await bubblewrap()).run(asked)
    await until(() => asked.output.stdout === 'ready\n' && processesWith(sleep).length >= 4)
    await started.kill()
    expect(processesWith(sleep)).toEqual([])
    expect(await started.exited).toMatchObject({ code: null, signal: 'SIGKILL', reason: 'killed' })
  })

  test('lets the command end in order within a second', async () => {
    const asked = await command(`trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done`)
    const started = (await bubblewrap()).run(asked)
    await until(() => asked.output.stdout === 'ready\n')
    await started.kill()
    expect(await started.exited).toMatchObject({ code: 0, reason: 'killed' })
    expect(asked.output.stdout).toBe('ready\nbye\n')
  })

  test('works at any moment of the start', async () => {
    const sleep = uniqueSleep()
    const sandbox = await bubblewrap()
    for (const waitMs of [0, 3, 6, 10, 15, 25, 40]) {
      const started = sandbox.run(await command(`trap '' TERM; ${sleep}`))
      // Not a wait for anything: the moments that are tried.
      await new Promise((resolve) => setTimeout(resolve, waitMs))
      await started.kill()
      expect((await started.exited).reason).toBe('killed')
    }
    expect(processesWith(sleep)).toEqual([])
  })
})

describe('nothing is left behind', () => {
  test('by a command that ends while its daemon runs', async () => {
    const sleep = uniqueSleep()
    const isThere = `grep -qzsx '${sleep.split(' ')[1]}' /proc/[0-9]*/cmdline`
    const result = await run(await bubblewrap(), `(setsid ${sleep} &); until ${isThere}; do sleep 0.02; done; exit 3`)
    expect(result).toMatchObject({ code: 3, reason: 'exit' })
    expect(processesWith(sleep)).toEqual([])
  })

  test('by 20 runs, and by close', async () => {
    const { sandbox, runDirectory } = await openSandbox('bubblewrap')
    const [own] = await readdir(runDirectory)
    const before = await readdir(join(runDirectory, own!))
    const groups = controlGroups(process.pid)
    for (let index = 0; index < 20; index++) {
      const forwarded = index % 5 === 0 ? { network: internet, listen: {} } : {}
      expect((await run(sandbox, 'true', forwarded)).code).toBe(0)
    }
    expect(await readdir(join(runDirectory, own!))).toEqual(before)
    expect(controlGroups(process.pid).runs).toEqual(groups.runs)
    const sleep = uniqueSleep()
    const running = sandbox.run(await command(sleep))
    await until(() => processesWith(sleep).length > 0)
    await sandbox.close()
    expect((await running.exited).reason).toBe('killed')
    expect(await readdir(runDirectory)).toEqual([])
    expect(processesWith(sleep)).toEqual([])
  })

  test('by a server that is killed with kill -9', async () => {
    const [runDirectory, workTree, sleep] = [await directory(), await directory(), uniqueSleep()]
    const program = [
      '--import',
      'tsx',
      join(import.meta.dirname, 'parent.ts'),
      runDirectory,
      workTree,
      sleep,
      'bubblewrap',
    ]
    const parent: ChildProcess = spawn(process.execPath, program, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
    const exited = once(parent, 'exit')
    await once(parent.stdout!, 'data')
    // The first output comes a moment before the last of them is started.
    await until(() => processesWith(sleep).length > 2)
    parent.kill('SIGKILL')
    await exited
    const empty = async () =>
      processesWith(sleep).length === 0 &&
      controlGroups(parent.pid!).all.length === 0 &&
      (await readdir(runDirectory)).length === 0
    await until(empty)
  })
})
