import type { Duplex } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRefreshWait } from '../../../src/engines/edge/hosts/refresh-wait.ts'
import type { ServerProjects } from '../../../src/engines/edge/hosts/server-projects.ts'
import { startWorld, type World } from './world.ts'

describe('waiting for a refresh', () => {
  test('happens only while the table is being read', () => {
    expect(createRefreshWait(() => null)()).toBeNull()
    expect(createRefreshWait(() => ({ settled: () => null }))()).toBeNull()
  })

  test('ends when the table is read, or after the timeout', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const refreshed = createRefreshWait(() => ({ settled: () => promise }))()
    resolve()
    await refreshed
    const never = new Promise<void>(() => {})
    await createRefreshWait(() => ({ settled: () => never }), { waitMs: 1, maxWaiting: 1 })()
  })

  test('is limited in number', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const waitForRefresh = createRefreshWait(() => ({ settled: () => promise }), { waitMs: 60_000, maxWaiting: 1 })
    const first = waitForRefresh()
    expect(first).not.toBeNull()
    expect(waitForRefresh()).toBeNull()
    resolve()
    await first
    expect(waitForRefresh()).not.toBeNull()
  })
})

describe('whoever hears of a deployment', () => {
  let world: World
  const servers = {
    ready: async () => {},
    retire: async () => {},
    halt: async () => {},
    close: async () => {},
    upgrade: (_request: unknown, socket: Duplex) => void socket.end('HTTP/1.1 200 OK\r\n\r\nthe server'),
  }
  beforeAll(async () => {
    world = await startWorld({ servers: servers as unknown as ServerProjects })
  })
  afterAll(() => world.stop())

  /** Does something in the very moment in which the deployment's READY is heard of. */
  async function whenHeard<T>(id: string, act: () => Promise<T>): Promise<T> {
    const done = new Promise<T>((resolve, reject) => {
      const off = world.notifications.on('event', ({ type, subject }) => {
        if (type !== 'deployment.ready' || subject !== id) return
        off()
        act().then(resolve, reject)
      })
    })
    await world.ready(id)
    return done
  }

  test('finds it, at its own address and in production', async () => {
    for (let n = 0; n < 10; n++) {
      await world.newProject(`heard-${n}`)
      const files = { 'index.html': 'here' }
      const { id, host } = await world.deploy(`heard-${n}`, files, { production: true, ready: false })
      const hosts = [host, `heard-${n}.localhost`]
      const answers = await whenHeard(id, () => Promise.all(hosts.map((name) => world.get(name, '/'))))
      expect(answers.map(({ text }) => text)).toEqual(['here', 'here'])
    }
  })

  test('opens a WebSocket there', async () => {
    await world.newProject('socket')
    const { id, host } = await world.deploy('socket', {}, { kind: 'node', production: true, ready: false })
    const upgrade = `GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`
    expect(await whenHeard(id, () => world.raw(upgrade))).toContain('the server')
  })

  test('is told of an unknown host at once when nothing is being read', async () => {
    expect((await world.get('nobody.localhost', '/')).status).toBe(404)
  })
})
