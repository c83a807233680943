import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { promisify } from 'node:util'
import { afterAll, describe, expect, vi } from 'vitest'
import { until } from '../helpers/until.ts'
import {
  bubblewrap,
  cleanUp,
  command,
  internet,
  limits,
  openSandbox,
  processesWith,
  run,
  bubblewrapTest as test,
  uniqueSleep,
} from './sandboxes.ts'

afterAll(cleanUp)

/** The text of a kernel file; empty if the file doesn't exist. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

describe('a command cannot use more than its', () => {
  test('memory', async () => {
    const program = 'const all = []; for (;;) all.push(Buffer.alloc(1e7, 1))'
    const result = await run(await bubblewrap(), ['node', '-e', program], { limits: { ...limits, memoryMb: 128 } })
    expect(result).toMatchObject({ reason: 'memory', signal: 'SIGKILL' })
  })

  test('memory, by a child whose death the shell survives, with the forwarder beside it', async () => {
    const script = `node -e "const all = []; for (;;) all.push(Buffer.alloc(1e7, 1))"; exit 1`
    const more = { limits: { ...limits, memoryMb: 128 }, network: internet }
    expect(await run(await bubblewrap(), script, more)).toMatchObject({ reason: 'memory' })
  })

  test('memory, by files in /tmp', async () => {
    const script = 'head -c 300000000 /dev/zero > /tmp/big || stat -c %s /tmp/big'
    const { stdout } = await run(await bubblewrap(), script, { limits: { ...limits, memoryMb: 128 } })
    expect(Number(stdout)).toBeLessThanOrEqual(64 * 1024 * 1024)
  })

  test("share of this process's time, by printing", async () => {
    // Longer than one slice, so the stream is paused. listening.test.ts shows for how long.
    const onOutput = () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    const paused = vi.spyOn(Socket.prototype, 'pause')
    const printer = (await bubblewrap()).run(await command('yes', { onOutput }))
    await until(() => paused.mock.calls.length > 3)
    paused.mockRestore()
    await printer.kill()
  })

  test('processes', async () => {
    const script = 'i=0; while [ $i -lt 300 ]; do sleep 20 & i=$((i+1)); echo $i; done'
    const result = await run(await bubblewrap(), script, { limits: { ...limits, processes: 50 } })
    expect(result).toMatchObject({ code: 2, reason: 'exit' })
    expect(result.stderr).toMatch(/fork/i)
    expect(result.stdout.trim().split('\n').length).toBeLessThanOrEqual(54)
  })

  test('processes, by a fork bomb, while the machine stays responsive', async () => {
    const script = 'bomb() { bomb | bomb & }; bomb; while :; do bomb; done 2>/dev/null'
    const asked = await command(script, { limits: { ...limits, processes: 100, cpus: 0.5, timeoutMs: 600_000 } })
    const bomb = (await bubblewrap()).run(asked)
    let over = false
    void bomb.exited.then(() => {
      over = true
    })
    // The shell may give up by itself.
    await until(() => over || processesWith(script).length > 50)
    await promisify(execFile)('true')
    await bomb.kill()
    expect(['killed', 'exit']).toContain((await bomb.exited).reason)
    expect(processesWith(script)).toEqual([])
  })

  test('processor time', async () => {
    const script = `while :; do : ${randomUUID()}; done`
    const busy = (await bubblewrap()).run(await command(script, { limits: { ...limits, cpus: 0.2 } }))
    // The kernel counts how often it throttles a group.
    const isThrottled = (pid: string) =>
      textOf(`/proc/${pid}/cgroup`)
        .split('\n')
        .map((line) => line.split(':'))
        .some(([, controllers, group]) =>
          /^nr_throttled [1-9]/m.test(textOf(`/sys/fs/cgroup/${controllers}${group}/cpu.stat`)),
        )
    await until(() => processesWith(script).some(isThrottled))
    await busy.kill()
  })

  test('disk, by many files', async () => {
    const script =
      'i=0; while [ $i -lt 400 ]; do head -c 5000000 /dev/zero > f$i || exit 9; i=$((i+1)); sleep 0.02; done'
    const result = await run(await bubblewrap(), script, { limits: { ...limits, diskMb: 60 } })
    expect(result).toMatchObject({ code: null, reason: 'disk' })
  })

  test('disk, by one file', async () => {
    const result = await run(await bubblewrap(), 'head -c 100000000 /dev/zero > big; du -k big', {
      limits: { ...limits, diskMb: 20 },
    })
    expect(result.stdout === '' || Number.parseInt(result.stdout, 10) <= 20 * 1024).toBe(true)
    expect(
      (
        await run(await bubblewrap(), 'exec head -c 100000000 /dev/zero > big', {
          limits: { ...limits, diskMb: 20 },
        })
      ).reason,
    ).toBe('disk')
  })

  test('disk, by empty files', async () => {
    const program = `for (let i = 0; i < 6000; i++) require('fs').writeFileSync('f' + i, ''); process.exit(1)`
    const result = await run(await bubblewrap(), ['node', '-e', program], { limits: { ...limits, diskMb: 4 } })
    expect(result.reason).toBe('disk')
  })

  test('time', async () => {
    const script = `trap '' TERM; ${uniqueSleep()}`
    const result = await run(await bubblewrap(), script, { limits: { ...limits, timeoutMs: 500 } })
    expect(result).toMatchObject({ code: null, signal: 'SIGKILL', reason: 'timeout' })
  })
})

describe('without control groups', () => {
  test('memory and processes are limited all the same, and the warning says how', async () => {
    const { sandbox } = await openSandbox('bubblewrap', { controlGroups: false })
    expect(sandbox.warning).toMatch(/memory is watched/)
    const program = 'const all = []; setInterval(() => all.push(Buffer.alloc(1e7, 1)), 20)'
    const script = `node -e "${program}" & wait`
    const bounded = { ...limits, memoryMb: 200 }
    expect((await run(sandbox, script, { limits: bounded, network: internet })).reason).toBe('memory')
    const forks = 'i=0; while [ $i -lt 300 ]; do sleep 20 & i=$((i+1)); done'
    const result = await run(sandbox, forks, { limits: { ...limits, processes: 50 } })
    expect(result).toMatchObject({ code: 2, stderr: expect.stringMatching(/fork/i) })
  })
})
