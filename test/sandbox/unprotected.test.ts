import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, test } from 'vitest'
import { createSandbox, SandboxError } from '../../src/sandbox/sandbox.ts'
import {
  cleanUp,
  command,
  directory,
  eventually,
  limits,
  openSandbox,
  processesWith,
  run,
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

describe('the driver none', () => {
  test('gives output, exit code, signal, folder and only the given environment', async () => {
    const { sandbox } = await openSandbox('none')
    const workTree = await directory()
    await mkdir(join(workTree, 'site'))
    const result = await run(sandbox, 'pwd; echo err >&2; exit 7', { workTree, cwd: 'site' })
    expect(result).toEqual({ code: 7, signal: null, reason: 'exit', stdout: `${workTree}/site\n`, stderr: 'err\n' })
    expect(await run(sandbox, 'kill -KILL $$')).toMatchObject({ code: null, signal: 'SIGKILL', reason: 'exit' })
    const { stdout } = await run(sandbox, ['/usr/bin/env'], { environment: { A: '1' } })
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split('=')[0])
        .sort(),
    ).toEqual(['A', 'HOME', 'PATH', 'PWD'])
    await expect(run(sandbox, ['/no/such/program'])).rejects.toThrow(SandboxError)
    await expect(run(sandbox, 'true', { cwd: '..' })).rejects.toThrow('leaves the work tree')
  })

  test('turns places inside the sandbox into those of the host', async () => {
    const { sandbox } = await openSandbox('none')
    const [workTree, host] = [await directory(), await directory()]
    const environment = { npm_config_cache: '/cache', OUT: '/build/out', OTHER: '/building' }
    const more = { workTree, caches: [{ host, inside: '/cache' }], environment }
    expect((await run(sandbox, 'echo $npm_config_cache $OUT $OTHER', more)).stdout).toBe(
      `${host} ${workTree}/out /building\n`,
    )
  })

  test('ends the group at the deadline, at the disk limit and by kill', async () => {
    const { sandbox } = await openSandbox('none')
    const sleep = uniqueSleep()
    const late = await run(sandbox, `${sleep} & ${sleep}`, { limits: { ...limits, timeoutMs: 300 } })
    expect(late).toMatchObject({ code: null, signal: 'SIGKILL', reason: 'timeout' })
    const full = await run(sandbox, `head -c 30000000 /dev/zero > a; ${sleep}`, { limits: { ...limits, diskMb: 10 } })
    expect(full.reason).toBe('disk')
    const asked = await command(`trap '' TERM; echo ready; ${sleep} & ${sleep}; ${sleep}`)
    const started = sandbox.run(asked)
    await eventually(() => asked.output.stdout === 'ready\n', 5000)
    await started.kill()
    expect(await started.exited).toMatchObject({ reason: 'killed' })
    expect(processesWith(sleep)).toEqual([])
  })

  test('does not wait for a daemon that holds the output open', async () => {
    const { sandbox } = await openSandbox('none')
    const before = Date.now()
    expect((await run(sandbox, 'setsid sleep 5 & exit 0')).code).toBe(0)
    expect(Date.now() - before).toBeLessThan(3000)
  })

  test('gives a server a free port of the host', async () => {
    const { sandbox } = await openSandbox('none')
    const program = `require('http').createServer((request, response) => response.end(request.url))
      .listen(process.env.PORT, () => console.log('up'))`
    const asked = await command(['node', '-e', program], { listen: { port: 3000 } })
    const started = sandbox.run(asked)
    const address = (await started.address)!
    expect(await eventually(() => asked.output.stdout === 'up\n', 5000)).toBe(true)
    const [response] = await once(request({ ...address, path: '/here' }).end(), 'response')
    expect(await text(response)).toBe('/here')
    await started.kill()
  })
})
