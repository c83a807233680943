// Streams and WebSockets of a server project over HTTPS: ended when their host is barred, and none is begun then.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex, Readable } from 'node:stream'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ServerProjects } from '../../../src/engines/edge/hosts/server-projects.ts'
import { findProject } from '../../../src/services/projects/projects.ts'
import { until } from '../../helpers/until.ts'
import { expectNeutral, looksOverTls, putBack, suspend, takeDown } from './barring.ts'
import { ask, type HttpsWorld, startHttpsWorld } from './https-world.ts'

const calls: string[] = []
const servers: ServerProjects = {
  ready: async (id) => void calls.push(`ready ${id}`),
  retire: async () => {},
  halt: async (id) => void calls.push(`halt ${id}`),
  close: async () => {},
  proxy(_request: IncomingMessage, response: ServerResponse) {
    calls.push('proxy')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const timer = setInterval(() => response.write('data: tick\n\n'), 5)
    response.on('close', () => clearInterval(timer))
  },
  upgrade(_request: IncomingMessage, socket: Duplex) {
    calls.push('upgrade')
    socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n')
    const timer = setInterval(() => socket.write('tick'), 5)
    socket.on('close', () => clearInterval(timer)).on('error', () => {})
  },
}

let world: HttpsWorld
let deployment: string
beforeAll(async () => {
  world = await startHttpsWorld({ servers })
  await world.newProject('live')
  const made = await world.deploy('live', {}, { kind: 'node', production: true })
  deployment = made.id
  await world.db.project.updateMany({ data: { framework: 'node' } })
  await world.secure('live', 'live.test')
  await until(() => world.edge.snapshot!.find('live.test')?.target)
})
afterAll(() => world.stop())
beforeEach(() => void calls.splice(0))

/** Resolves when something came; `over` when it is closed. */
async function begun(stream: Readable): Promise<{ over: Promise<void> }> {
  stream.on('error', () => {})
  const over = new Promise<void>((resolve) => stream.on('close', () => resolve()))
  let text = ''
  await new Promise<void>((resolve) => {
    stream.on('data', (chunk) => {
      text += chunk
      if (text.includes('tick')) resolve()
    })
  })
  return { over }
}

async function openAll(): Promise<Promise<void>[]> {
  const events = await world.handshake('live.test')
  events.write('GET / HTTP/1.1\r\nHost: live.test\r\n\r\n')
  const webSocket = await world.handshake('live.test')
  webSocket.write('GET / HTTP/1.1\r\nHost: live.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  const session = await world.session('live.test')
  const stream = session.request({ ':path': '/', ':authority': 'live.test' })
  const open = await Promise.all([begun(events), begun(webSocket), begun(stream)])
  return open.map(({ over }) => over)
}

describe('streams and WebSockets over HTTPS', () => {
  test.each(['a suspension', 'a takedown of the host', 'a takedown of the project'])(
    'are ended by %s',
    async (cause) => {
      const open = await openAll()
      const host = cause.endsWith('host')
      const project = (await findProject(world.db, world.actor, 'live')).id
      const suspends = cause === 'a suspension'
      const made = suspends
        ? await suspend(world, world.actor.accountId, true)
        : await takeDown(world, host ? { host: 'live.test' } : { project })
      await Promise.all(open)
      // The process goes on for the other hosts of the project if only one is taken down.
      expect(calls.includes(`halt ${deployment}`)).toBe(!host)
      calls.splice(0)
      const session = await world.session('live.test')
      expectNeutral(await looksOverTls(world, 'live.test', session))
      const refused = await world.handshake('live.test')
      refused.write('GET / HTTP/1.1\r\nHost: live.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
      expect(String(Buffer.concat(await refused.toArray()))).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/)
      expect(calls).toEqual([])
      if (suspends) await suspend(world, world.actor.accountId, false)
      else await putBack(world, made.id)
      await until(() => world.edge.snapshot!.find('live.test')?.target)
      if (!host) expect(calls).toContain(`ready ${deployment}`)
      session.close()
      const again = await world.session('live.test')
      const stream = again.request({ ':path': '/', ':authority': 'live.test' })
      await begun(stream)
      stream.close()
      expect((await ask(again, { ':path': '/', ':authority': 'other.test' })).status).toBe(421)
      again.close()
    },
  )
})
