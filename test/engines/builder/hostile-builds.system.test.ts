import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sharedSandbox } from '../../helpers/sandbox.ts'
import { until } from '../../helpers/until.ts'
import { type Platform, sandboxRequired, scripts, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 120_000 })

const protectedHere = (await sharedSandbox()).driver === 'bubblewrap'

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform({ BUILD_MEMORY_MB: '256', BUILD_TIMEOUT_MS: '20000' })
})
afterAll(() => platform.stop())

async function build(name: string, command: string): Promise<{ id: string; deployment: Record<string, never> }> {
  const script = `${command}; mkdir -p dist; echo x > dist/index.html`
  await platform.project(name, { 'package.json': scripts({ build: script }) }, { framework: 'vite' })
  const id = await platform.deploy(name)
  return { id, deployment: await platform.settled(id) }
}

test('builds run in a sandbox where peers are required', () => {
  if (sandboxRequired) expect(protectedHere).toBe(true)
})

describe.runIf(protectedHere)('a hostile build', () => {
  test('that eats memory ends in ERROR build_out_of_memory, and the server lives on', async () => {
    const { deployment } = await build('memory', 'node -e "const a=[];for(;;)a.push(Buffer.alloc(1<<20,1))" || exit 9')
    expect(deployment).toMatchObject({ state: 'ERROR', error: { code: 'build_out_of_memory' } })
  })

  test('that forks without end is held, ended at its deadline or by itself, and others are built meanwhile', async () => {
    await platform.project('bomb', {
      'package.json': scripts({ build: 'echo begun; b() { b | b & }; b; sleep 5; exit 1' }),
    })
    const bomb = await platform.deploy('bomb')
    await until(async () => (await platform.log(bomb)).includes('build: begun'))
    const { deployment } = await build('beside', 'true')
    expect(deployment).toMatchObject({ state: 'READY' })
    expect(await platform.settled(bomb)).toMatchObject({ state: 'ERROR' })
  })

  test('sees neither the files, the processes nor the loopback services of the host', async () => {
    const service = createServer((socket) => socket.end('secret service')).listen(0, '127.0.0.1')
    await new Promise((resolve) => service.once('listening', resolve))
    const { port } = service.address() as { port: number }
    const { dataDir } = platform.api.config
    const probes = [
      `cat ${dataDir}/* /etc/shadow /root/* 2>&1 | head -c 300`,
      `ls ${process.cwd()} 2>&1 | head -3`,
      'ls /proc | grep -c "^[0-9]"',
      `node -e "require('net').connect(${port},'127.0.0.1').on('data',d=>console.log('reached',String(d))).on('error',e=>console.log('refused',e.code))"`,
    ]
    const { id } = await build('nosy', probes.join('; '))
    const log = await platform.log(id)
    expect(log).toContain('refused ECONNREFUSED')
    expect(log).not.toContain('secret service')
    expect(log).not.toMatch(/build: (root|postgres):/)
    expect(log).toMatch(new RegExp(`cannot access '${process.cwd()}'`))
    service.close()
  })
})
