import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect } from 'vitest'
import { until } from '../../helpers/until.ts'
import { type World, withEachDriverAtOnce } from './world.ts'

/** A request that is under way at the server that is shown, until it is ended. */
async function hold(world: World): Promise<{ end(): Promise<string> }> {
  const sent = request({ port: world.port, host: '127.0.0.1', agent: world.agent, path: '/held', method: 'POST' })
  sent.write('begun')
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return {
    end() {
      sent.end()
      return text(answer)
    },
  }
}

withEachDriverAtOnce('when another deployment takes over', (test) => {
  test('no request fails, and each answer is of one version', async ({ start }) => {
    const world = await start()
    for (const id of ['v1', 'v2', 'v3', 'v4']) await world.deploy(id)
    await world.servers.ready('v1')
    world.show('v1')
    let over = false
    const answers: string[] = []
    const client = async (path: string, method: string) => {
      while (!over) {
        const body = method === 'POST' ? 'x'.repeat(1000) : undefined
        const { status, text } = await world.get(path, { method, body })
        if (status !== 200) throw new Error(`${method} ${path}: ${status}`)
        answers.push(text)
      }
    }
    const clients = [
      ...Array.from({ length: 4 }, () => client('/parts', 'GET')),
      ...Array.from({ length: 2 }, () => client('/parts', 'POST')),
      ...Array.from({ length: 2 }, () => client('/', 'GET')),
    ]
    const failed = Promise.all(clients)
    const retired: Promise<void>[] = []
    let current = 'v1'
    // v1 comes back in between, as by a rollback.
    for (const next of ['v2', 'v3', 'v1', 'v4']) {
      await Promise.race([world.servers.ready(next), failed])
      world.show(next)
      retired.push(world.servers.retire(current))
      current = next
      const mark = answers.length
      await Promise.race([until(() => answers.length > mark + 100), failed])
    }
    await Promise.all(retired)
    over = true
    await failed
    expect(answers.length).toBeGreaterThan(400)
    const versions = answers.map((text) => new Set(text.match(/v\d/g)))
    expect(versions.filter((found) => found.size !== 1)).toEqual([])
    expect(new Set(versions.flatMap((found) => [...found])).size).toBe(4)
    for (const id of ['v2', 'v3']) await until(() => world.lines(id).at(-1)?.includes('taken over'))
  })

  test('the old one finishes a slow answer before it stops', async ({ start }) => {
    const world = await start()
    await world.deploy('old')
    await world.deploy('new')
    await world.servers.ready('old')
    world.show('old')
    const slow = await hold(world)
    await world.servers.ready('new')
    world.show('new')
    let stopped = false
    const retired = world.servers.retire('old').finally(() => {
      stopped = true
    })
    expect((await world.get('/')).text).toBe('hello from new')
    expect(stopped).toBe(false)
    expect(await slow.end()).toBe('held by old')
    await retired
    // Served for ever at its own address: the next request starts it again.
    world.show('old')
    expect((await world.get('/')).text).toBe('hello from old')
  })

  test('what does not end is cut off after the drain time, WebSockets too', async ({ start }) => {
    const world = await start({ drainMs: 400 })
    await world.deploy('old')
    await world.servers.ready('old')
    world.show('old')
    const endless = world.get('/endless').catch((error) => error.code)
    const socket = new WebSocket(`ws://127.0.0.1:${world.port}/`)
    await new Promise((resolve) => socket.addEventListener('open', resolve))
    const closed = new Promise((resolve) => socket.addEventListener('close', ({ code }) => resolve(code)))
    await world.servers.retire('old')
    // The browser is told that the server goes away, and opens another one.
    expect(await closed).toBe(1001)
    expect(await endless).toBe('ECONNRESET')
  })

  test('one that is still asked for at its own address goes on, without a failure', async ({ start }) => {
    const world = await start({ drainMs: 3_000 })
    await world.deploy('old')
    await world.servers.ready('old')
    world.show('old')
    const { text: pid } = await world.get('/pid')
    const before = await hold(world)
    const retired = world.servers.retire('old')
    const since = await hold(world)
    expect(await before.end()).toBe('held by old')
    await retired
    expect(await since.end()).toBe('held by old')
    expect((await world.get('/pid')).text).toBe(pid)
  })

  test('a promotion back keeps the one that was to be retired', async ({ start }) => {
    const world = await start()
    await world.deploy('old')
    await world.servers.ready('old')
    world.show('old')
    const { text: pid } = await world.get('/pid')
    const slow = await hold(world)
    const retired = world.servers.retire('old')
    await world.servers.ready('old')
    await Promise.all([slow.end(), retired])
    expect((await world.get('/pid')).text).toBe(pid)
  })
})

withEachDriverAtOnce('WebSockets', (test) => {
  test('pass both ways, also to a server that is started for them', async ({ start }) => {
    const world = await start()
    await world.deploy('site')
    world.show('site')
    const socket = new WebSocket(`ws://127.0.0.1:${world.port}/socket`)
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve)
      socket.addEventListener('error', reject)
    })
    const received: string[] = []
    socket.addEventListener('message', ({ data }) => received.push(String(data)))
    const messages = ['hello', 'x'.repeat(200), 'y'.repeat(200_000)]
    for (const message of messages) socket.send(message)
    await until(() => received.length === 3)
    expect(received).toEqual(messages)
    const closed = new Promise<number>((resolve) => socket.addEventListener('close', ({ code }) => resolve(code)))
    socket.close(1000)
    expect(await closed).toBe(1000)
  })

  test('that the server refuses get its answer', async ({ start }) => {
    const world = await start()
    await world.deploy('site')
    world.show('site')
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-key': 'a',
      'sec-websocket-version': '13',
    }
    const sent = request({ port: world.port, host: '127.0.0.1', path: '/forbidden', headers }).end()
    const text = await new Promise((resolve, reject) => {
      sent.on('error', reject)
      sent.on('response', (answer) => {
        answer.setEncoding('utf8').on('data', (data) => resolve(`${answer.statusCode} ${data}`))
      })
    })
    expect(text).toBe('403 not so')
  })
})
