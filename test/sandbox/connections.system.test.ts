import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect } from 'vitest'
import { connectTo, createConnectionBy } from '../../src/sandbox/network/connect.ts'
import { openLoopback } from '../../src/sandbox/network/loopback.ts'
import type { Connect, Sandbox } from '../../src/sandbox/sandbox.ts'
import { until } from '../helpers/until.ts'
import { bubblewrap, cleanUp, command, openSandbox, processesWith, bubblewrapTest as test } from './sandboxes.ts'

afterAll(cleanUp)

async function get(connect: Connect, path: string): Promise<string> {
  const createConnection = createConnectionBy(connect)
  const [response] = await once(request({ createConnection, path }).end(), 'response')
  return text(response)
}

const server = (host: string) => [
  'node',
  '-e',
  `require('http').createServer((request, response) => response.end(request.url + ' ' + process.env.PORT))
    .listen(process.env.PORT, '${host}', () => console.log('up'))`,
]

/** Whether connections are opened in the sandbox's namespace here: as root, with koffi. */
const enterable = (await openLoopback()) !== null

const ways: Record<string, () => Promise<Sandbox>> = {
  'by the best way': bubblewrap,
  'by the forwarder': async () => (await openSandbox('bubblewrap', { forwardConnections: true })).sandbox,
}

for (const [way, open] of Object.entries(ways)) {
  describe(`a server in the sandbox is reached ${way}`, () => {
    for (const host of ['127.0.0.1', '::1', '0.0.0.0']) {
      test(`when it listens on ${host}, and nobody else can reach it`, async () => {
        const asked = await command(server(host), { listen: { port: 4321 } })
        const started = (await open()).run(asked)
        const connect = (await started.connect)!
        await until(() => asked.output.stdout === 'up\n')
        const answers = await Promise.all(['/a', '/b', '/c'].map((path) => get(connect, path)))
        expect(answers).toEqual(['/a 4321', '/b 4321', '/c 4321'])
        await expect(get(() => connectTo({ host: '127.0.0.1', port: 4321 }), '/')).rejects.toThrow('ECONNREFUSED')
        await started.kill()
        await expect(get(connect, '/')).rejects.toThrow(/ENOENT|ECONNREFUSED/)
      })
    }

    test('not before it listens, and the attempt does not wait', async () => {
      const started = (await open()).run(await command('echo ready; sleep 20', { listen: {} }))
      await expect(get((await started.connect)!, '/')).rejects.toThrow()
      await started.kill()
    })

    test('not once it has ended', async () => {
      const started = (await open()).run(await command('exit 3', { listen: {} }))
      expect(await started.exited).toMatchObject({ code: 3 })
      const connect = await started.connect
      if (connect) await expect(connect()).rejects.toThrow(/ENOENT|ECONNREFUSED/)
    })
  })
}

describe.skipIf(!enterable)('connections opened in the namespace of a sandbox', () => {
  const own = readlinkSync('/proc/self/ns/net')
  /** Of other processes, held by this one. */
  const namespaces = () => {
    const links = readdirSync('/proc/self/fd').map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`)
      } catch {
        return ''
      }
    })
    return links.filter((link) => link.startsWith('net:[') && link !== own)
  }

  test('need no process beside the command', async () => {
    const asked = await command(server('127.0.0.1'), { listen: { port: 4322 } })
    const started = (await bubblewrap()).run(asked)
    await started.connect
    await until(() => asked.output.stdout === 'up\n')
    const sandboxed = processesWith('process.env.PORT').map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1'))
    expect(sandboxed.filter((line) => line.includes('forwarder'))).toEqual([])
    await started.kill()
  })

  test('leave this process in its own namespace, and none of the other behind', async () => {
    const open = namespaces().length
    // It would be reached if the connection were not made in the sandbox.
    const mine = createServer().listen(4323, '127.0.0.1')
    await once(mine, 'listening')
    const asked = await command('echo up; sleep 20', { listen: { port: 4323 } })
    const started = (await bubblewrap()).run(asked)
    const connect = (await started.connect)!
    for (let i = 0; i < 200; i++) await expect(connect()).rejects.toThrow('ECONNREFUSED')
    expect(readlinkSync('/proc/self/ns/net')).toBe(own)
    expect(namespaces()).toHaveLength(open + 1)
    await started.kill()
    mine.close()
    expect(namespaces()).toHaveLength(open)
  })

  test('are not passed on to later sandboxes', async () => {
    const sandbox = await bubblewrap()
    const first = await command(server('127.0.0.1'), { listen: { port: 4324 } })
    const running = sandbox.run(first)
    const connect = (await running.connect)!
    await until(() => first.output.stdout === 'up\n')
    const socket = await connect()
    const second = await command('ls -l /proc/self/fd | grep -v " [012] -> "; echo seen', {
      listen: {},
    })
    const { code } = await sandbox.run(second).exited
    expect(code).toBe(0)
    expect(second.output.stdout).toContain('seen')
    expect(second.output.stdout).not.toMatch(/net:|socket:/)
    socket.destroy()
    await running.kill()
  })

  test('do not block this process when a server accepts none', async () => {
    const program = `require('net').createServer().listen({ port: process.env.PORT, host: '127.0.0.1', backlog: 1 }, () => {
      require('fs').writeSync(1, 'up\\n')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    })`
    const asked = await command(['node', '-e', program], { listen: { port: 4325 } })
    const started = (await bubblewrap()).run(asked)
    const connect = (await started.connect)!
    await until(() => asked.output.stdout === 'up\n')
    const sockets = await Promise.all(Array.from({ length: 20 }, () => connect()))
    // Those beyond the queue are not connected, and nothing is lost by it but their requests.
    for (const socket of sockets) socket.on('error', () => {}).write('GET / HTTP/1.1\r\n\r\n')
    for (const socket of sockets) socket.destroy()
    await started.kill()
  })

  test('are only opened in the sandbox that they are meant for', async () => {
    const loopback = (await openLoopback())!
    // This process is no child of that parent, and its namespace is no sandbox's.
    expect(loopback.open(process.pid, 1 << 22)).toBeNull()
    expect(() => loopback.open(process.pid, process.ppid)).toThrow('no network namespace of its own')
    expect(loopback.open(1 << 22, process.pid)).toBeNull()
  })
})
