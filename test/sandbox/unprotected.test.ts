import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createConnectionBy } from '../../src/sandbox/network/connect.ts'
import { openPidNamespaces } from '../../src/sandbox/pid-namespace.ts'
import { createSandbox, type Sandbox, SandboxError } from '../../src/sandbox/sandbox.ts'
import { until } from '../helpers/until.ts'
import {
  cleanUp,
  command,
  directory,
  limits,
  openSandbox,
  processesWith,
  run,
  searchPath,
  uniqueSleep,
} from './sandboxes.ts'

afterAll(cleanUp)

describe('without bubblewrap', () => {
  test('auto falls back with a warning that names the cause; bubblewrap insists', async () => {
    const sandbox = await createSandbox('auto', { searchPath: '/no/such/directory' })
    expect(sandbox.driver).toBe('none')
    expect(sandbox.warning).toMatch(/without a sandbox.*bubblewrap is not installed/)
    await expect(createSandbox('bubblewrap', { searchPath: '' })).rejects.toThrow(SandboxError)
  })

  test('auto falls back when bubblewrap is there and does not work', async () => {
    const broken = await directory()
    await writeFile(join(broken, 'bwrap'), '#!/bin/sh\necho "No permissions to create new namespace" >&2\nexit 1\n', {
      mode: 0o755,
    })
    const runDirectory = await directory()
    const sandbox = await createSandbox('auto', { searchPath: broken, runDirectory })
    expect(sandbox).toMatchObject({ driver: 'none', warning: expect.stringContaining('No permissions') })
  })
})

type Way = 'pid-namespace' | 'marker'
const canUnshare = (await openPidNamespaces(searchPath)) !== undefined || process.env.BERTH_REQUIRE_PEERS === '1'
const ways: Way[] = canUnshare ? ['pid-namespace', 'marker'] : ['marker']

test('the warning says how processes are held', async () => {
  for (const way of ways) {
    const { sandbox } = await openSandbox('none', { containment: way })
    expect(sandbox.warning).toMatch(way === 'marker' ? /those escape that/ : /none outlives its command/)
  }
})

// Side by side: most of them wait for a deadline or an end.
describe.concurrent.each(ways)('the driver none with a %s', (containment) => {
  let sandbox: Sandbox
  beforeAll(async () => {
    sandbox = (await openSandbox('none', { containment })).sandbox
  })

  test('gives output, exit code, signal, folder and only the given environment', async () => {
    const workTree = await directory()
    await mkdir(join(workTree, 'site'))
    const result = await run(sandbox, 'pwd; echo err >&2; exit 7', { workTree, cwd: 'site' })
    expect(result).toEqual({ code: 7, signal: null, reason: 'exit', stdout: `${workTree}/site\n`, stderr: 'err\n' })
    expect(await run(sandbox, 'kill -KILL $$')).toEqual({
      ...{ code: 137, signal: 'SIGKILL', reason: 'exit' },
      ...{ stdout: '', stderr: '' },
    })
    const { stdout } = await run(sandbox, ['/usr/bin/env'], { environment: { A: '1' } })
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split('=')[0])
        .sort(),
    ).toEqual(['A', ...(containment === 'marker' ? ['BERTH_RUN'] : []), 'HOME', 'PATH', 'PWD'])
    expect(await run(sandbox, 'sh -c "kill -SEGV \\$\\$"')).toMatchObject({ code: 139, signal: 'SIGSEGV' })
    // A builtin of shells: the program is meant.
    expect((await run(sandbox, ['printf', '%s', "it's"])).stdout).toBe("it's")
    await expect(run(sandbox, ['/no/such/program'])).rejects.toThrow(SandboxError)
    await expect(run(sandbox, 'true', { cwd: '..' })).rejects.toThrow('leaves the work tree')
  })

  test('turns places inside the sandbox into those of the host', async () => {
    const [workTree, host] = [await directory(), await directory()]
    const environment = { npm_config_cache: '/cache', OUT: '/build/out', OTHER: '/building' }
    const more = { workTree, caches: [{ host, inside: '/cache' }], environment }
    expect((await run(sandbox, 'echo $npm_config_cache $OUT $OTHER', more)).stdout).toBe(
      `${host} ${workTree}/out /building\n`,
    )
  })

  test('ends the group at the deadline, at the disk limit and by kill', async () => {
    const sleep = uniqueSleep()
    const late = await run(sandbox, `${sleep} & ${sleep}`, { limits: { ...limits, timeoutMs: 300 } })
    expect(late).toMatchObject({ code: null, signal: 'SIGKILL', reason: 'timeout' })
    const full = await run(sandbox, `head -c 30000000 /dev/zero > a; ${sleep}`, { limits: { ...limits, diskMb: 10 } })
    expect(full.reason).toBe('disk')
    const asked = await command(`trap '' TERM; echo ready; ${sleep} & ${sleep}; ${sleep}`)
    const started = sandbox.run(asked)
    await until(() => asked.output.stdout === 'ready\n')
    await started.kill()
    expect(await started.exited).toMatchObject({ reason: 'killed' })
    expect(processesWith(sleep)).toEqual([])
  })

  // Ways out of the command's process group, each of which leaves one process behind. The last clears its environment
  // as well; a marker sees it only in the group of the command, a namespace always.
  const leave: Record<string, (sleep: string) => string> = {
    setsid: (sleep) => `setsid ${sleep} &`,
    'a double fork': (sleep) => `(setsid sh -c '${sleep} & exec sleep 0' &)`,
    nohup: (sleep) => `nohup ${sleep} > /dev/null 2>&1 &`,
    'a double fork without environment': (sleep) =>
      containment === 'marker' ? `(env -i sh -c '${sleep} & exit' &)` : `(env -i setsid sh -c '${sleep} & exit' &)`,
  }
  /** The command itself runs until it is ended. */
  async function started(script: string, sleep: string) {
    const asked = await command(`${script}\necho ready; exec ${sleep}`)
    const running = sandbox.run(asked)
    await until(() => processesWith(sleep).length >= 2 && asked.output.stdout === 'ready\n')
    return running
  }

  /** A question for the shell: whether the process runs that was left behind. */
  const isThere = (sleep: string) => `grep -lzsx '${sleep.split(' ')[1]}' /proc/[0-9]*/cmdline > /dev/null`
  async function atTheEnd(script: string, sleep: string) {
    // It waits until the other is there; the output, which that one holds open, does not delay the end.
    const ended = await run(sandbox, `${script}\nuntil ${isThere(sleep)}; do sleep 0.02; done; exit 3`)
    expect(ended).toMatchObject({ code: 3, reason: 'exit' })
  }
  async function byKill(script: string, sleep: string) {
    const canceled = await started(script, sleep)
    await canceled.kill()
    expect(await canceled.exited).toMatchObject({ code: 143, signal: 'SIGTERM', reason: 'killed' })
  }
  async function atTheDeadline(script: string, sleep: string) {
    // A busy machine may not come that far at first; only a run that did says something.
    for (let timeoutMs = 1000; ; timeoutMs *= 3) {
      const asked = `${script}\nuntil ${isThere(sleep)}; do sleep 0.02; done; echo ready; exec ${sleep}`
      const late = await run(sandbox, asked, { limits: { ...limits, timeoutMs } })
      expect(late).toMatchObject({ code: null, signal: 'SIGKILL', reason: 'timeout' })
      if (late.stdout === 'ready\n') return
    }
  }

  for (const [name, script] of Object.entries(leave)) {
    test(`lets nothing survive that left by ${name}: at the end, by kill, at the deadline`, async () => {
      const ends = [atTheEnd, byKill, atTheDeadline].map(async (end) => {
        const sleep = uniqueSleep()
        await end(script(sleep), sleep)
        expect(processesWith(sleep)).toEqual([])
      })
      await Promise.all(ends)
    })
  }

  test('lets the command end in order within a second', async () => {
    const asked = await command(`trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done`)
    const started = sandbox.run(asked)
    await until(() => asked.output.stdout === 'ready\n')
    await started.kill()
    expect(await started.exited).toMatchObject({ code: 0, reason: 'killed' })
    expect(asked.output.stdout).toBe('ready\nbye\n')
  })

  test('can be killed at any moment of the start', async () => {
    const sleep = uniqueSleep()
    const moments = [0, 1, 2, 4, 7, 11, 16, 25].map(async (waitMs) => {
      const started = sandbox.run(await command(`trap '' TERM; setsid ${sleep} & ${sleep}`))
      // Not a wait for anything: the moments that are tried.
      await new Promise((resolve) => setTimeout(resolve, waitMs))
      await started.kill()
      return (await started.exited).reason
    })
    expect(new Set(await Promise.all(moments))).toEqual(new Set(['killed']))
    expect(processesWith(sleep)).toEqual([])
  })

  test('leaves nothing behind when its server is killed with kill -9', async () => {
    const [workTree, sleep] = [await directory(), uniqueSleep()]
    const program = ['--import', 'tsx', join(import.meta.dirname, 'parent.ts'), workTree, workTree, sleep, 'none']
    const parent = spawn(process.execPath, [...program, containment], {
      cwd: join(import.meta.dirname, '../..'),
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exited = once(parent, 'exit')
    await once(parent.stdout, 'data')
    await until(() => processesWith(sleep).length > 2)
    parent.kill('SIGKILL')
    await exited
    await until(() => processesWith(sleep).length === 0)
  })

  test('gives a server a free port of the host', async () => {
    const program = `require('http').createServer((request, response) => response.end(request.url))
      .listen(process.env.PORT, () => console.log('up'))`
    const asked = await command(['node', '-e', program], { listen: { port: 3000 } })
    const started = sandbox.run(asked)
    const createConnection = createConnectionBy((await started.connect)!)
    await until(() => asked.output.stdout === 'up\n')
    const [response] = await once(request({ createConnection, path: '/here' }).end(), 'response')
    expect(await text(response)).toBe('/here')
    await started.kill()
  })
})
