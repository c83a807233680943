import { request } from 'node:http'
import { expect, test } from 'vitest'
import { ServerUnavailable, ServerUnhealthy } from '../../../src/engines/servers/instance/failures.ts'
import { type Sandbox, SandboxError } from '../../../src/sandbox/sandbox.ts'
import { until } from '../../helpers/until.ts'
import { startWorld, withEachDriverAtOnce } from './world.ts'

withEachDriverAtOnce('a server', (test) => {
  test('is started once for all who ask, and is ready when it answers', async ({ start }) => {
    const world = await start()
    await world.deploy('site')
    world.show('site')
    const answers = Promise.all(Array.from({ length: 5 }, () => world.get('/pid')))
    await Promise.all([world.servers.ready('site'), world.servers.ready('site')])
    expect(new Set((await answers).map(({ text }) => text)).size).toBe(1)
    await until(() => world.lines('site').length >= 3)
    expect(world.lines('site')).toEqual([
      '$ exec node server.mjs',
      'listening, the secret is ***',
      expect.stringMatching(/^The server answers after \d+ ms$/),
    ])
    expect(new Set(world.logged.get('site')!.map(({ step }) => step))).toEqual(new Set(['run']))
  })

  test('runs by npm start, with PORT and NODE_ENV', async ({ start }) => {
    const world = await start({}, { start: undefined })
    await world.deploy(
      'site',
      `import { createServer } from 'node:http'
       createServer((_, response) => response.end(process.env.NODE_ENV)).listen(process.env.PORT)`,
    )
    world.show('site')
    expect((await world.get('/')).text).toBe('production')
  })

  test('that answers with errors takes no traffic until it is well', async ({ start }) => {
    const world = await start()
    await world.deploy(
      'site',
      `import { createServer } from 'node:http'
       let asked = 0
       const status = () => (++asked < 5 ? 503 : 200)
       createServer((_, response) => response.writeHead(status()).end('x')).listen(process.env.PORT)`,
    )
    world.show('site')
    expect((await world.get('/')).status).toBe(200)
  })

  test('that never listens is not ready, and the reason says so', async ({ start }) => {
    // A busy machine may not have started them in that time; only a run where both were says something.
    for (let startMs = 5_000; ; startMs *= 2) {
      const world = await start({ startTimeoutMs: startMs })
      await world.deploy('deaf', `console.log('my key is ' + process.env.API_KEY); setInterval(() => {}, 1000)`)
      await world.deploy(
        'sick',
        `import { createServer } from 'node:http'
         createServer((_, response) => response.writeHead(500).end()).listen(process.env.PORT)`,
      )
      const [deaf, sick] = await Promise.all(
        ['deaf', 'sick'].map((id) => world.servers.ready(id).catch((error) => error)),
      )
      const late = sick.message.includes('nothing listens')
      if (late && startMs < 30_000) continue
      expect(deaf).toBeInstanceOf(ServerUnavailable)
      expect(deaf.message).toBe(
        `The server was not healthy within ${startMs / 1000} s: nothing listens at the port of the variable PORT`,
      )
      expect(sick.message).toContain('it answers GET / with 500')
      expect(world.processes('deaf')).toEqual([])
      return
    }
  })

  test('that ends, or whose files are not there, is not ready, and a visitor hears so', async ({ start }) => {
    const world = await start()
    await world.deploy('broken', `throw new Error('no database')`)
    await expect(world.servers.ready('broken')).rejects.toThrow(/exited with 1$/)
    await expect(world.servers.ready('absent')).rejects.toThrow('not on this machine')
    world.show('broken')
    expect(await world.get('/')).toMatchObject({ status: 503, headers: { 'retry-after': '5' } })
  })

  test('on demand is stopped when idle and makes room; in production it stays', async ({ start }) => {
    const world = await start({ idleMs: 300, maxOnDemand: 1 })
    for (const id of ['production', 'first', 'second']) await world.deploy(id)
    await world.servers.ready('production')
    for (const id of ['first', 'second']) {
      world.show(id)
      expect((await world.get('/')).text).toBe(`hello from ${id}`)
    }
    expect(world.processes('first')).toEqual([])
    await until(() => world.processes('second').length === 0)
    expect(world.processes('production')).not.toEqual([])
    expect((await world.get('/')).text).toBe('hello from second')
  })

  test('on demand leaves for one of another account where its own has more, however busy it is', async ({ start }) => {
    const settingsOf = async (id: string) => ({ environment: {}, network: 'none' as const, owner: id.slice(0, 1) })
    const world = await start({ maxOnDemand: 3 }, { settingsOf })
    // It never ends its answer.
    const busy = `import { createServer } from 'node:http'
      createServer((request, response) => {
        response.write(process.pid + '\\n')
        if (request.url !== '/busy') response.end()
      }).listen(process.env.PORT)`
    const hold = async (id: string) => {
      await world.deploy(id, busy)
      world.show(id)
      const { promise, resolve } = Promise.withResolvers<number>()
      request({ port: world.port, host: '127.0.0.1', path: '/busy' }, (response) => {
        response.on('error', () => {}).on('data', () => resolve(response.statusCode!))
      })
        .on('error', () => {})
        .end()
      return promise
    }
    for (const id of ['a1', 'a2', 'a3']) expect(await hold(id)).toBe(200)
    expect(await hold('b1')).toBe(200)
    // Two and one: what follows would take from an account that has no more.
    expect(await hold('b2')).toBe(503)
    expect(await hold('a4')).toBe(503)
    expect(await hold('c1')).toBe(200)
    const up = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'].filter((id) => world.servers.isWanted(id))
    expect(up.map((id) => id[0])).toEqual(['a', 'b', 'c'])
  })

  test('leaves no process behind when all is closed, whatever it was doing', async ({ start }) => {
    // Whatever else could end the three of them is far away.
    const later = { startTimeoutMs: 600_000, drainMs: 600_000, restartDelaysMs: [600_000] }
    const world = await start({ closeMs: 200, ...later })
    for (const id of ['busy', 'crashed', 'starting']) await world.deploy(id)
    await world.deploy('starting', 'setInterval(() => {}, 1000)')
    await world.servers.ready('busy')
    await world.servers.ready('crashed')
    world.show('crashed')
    await world.get('/crash')
    const waiting = world.get('/')
    await until(() => world.processes('crashed').length === 0)
    const starting = world.servers.ready('starting').catch((error) => error)
    await until(() => world.processes('starting').length > 0)
    world.show('busy')
    const endless = world.get('/endless').catch((error) => error.code)
    const socket = new WebSocket(`ws://127.0.0.1:${world.port}/`)
    await new Promise((resolve) => socket.addEventListener('open', resolve))
    await world.servers.close()
    for (const id of ['busy', 'crashed', 'starting']) expect(world.processes(id)).toEqual([])
    expect(await starting).toBeInstanceOf(ServerUnavailable)
    expect((await waiting).status).toBe(503)
    expect(await endless).toBe('ECONNRESET')
    expect((await world.get('/')).status).toBe(503)
    await expect(world.servers.ready('busy')).rejects.toThrow('stopping')
  })
})

withEachDriverAtOnce('a server of production', (test) => {
  test('whose start fails is started again without a request', async ({ start }) => {
    const world = await start({ restartDelaysMs: [10] })
    await world.deploy('site', `throw new Error('not yet')`)
    world.servers.keep('site')
    await expect(world.servers.ready('site')).rejects.toThrow('exited with 1')
    await world.deploy('site')
    await until(() => world.lines('site').some((line) => line.includes('answers after')))
    world.show('site')
    expect((await world.get('/')).status).toBe(200)
  })

  test('is not counted among those on demand, whoever asks first', async ({ start }) => {
    const world = await start({ maxOnDemand: 0 })
    await world.deploy('site')
    world.show('site')
    expect((await world.get('/')).status).toBe(503)
    world.servers.keep('site')
    expect((await world.get('/')).status).toBe(200)
  })
})

withEachDriverAtOnce('a proof', (test) => {
  const never = new AbortController().signal

  test('of a server that answers holds it up until it is released', async ({ start }) => {
    const world = await start({ idleMs: 50 })
    await world.deploy('site')
    const proof = await world.servers.prove('site', never)
    if (!proof.healthy) throw new Error(proof.reason)
    expect(world.processes('site')).not.toEqual([])
    await proof.release()
    await until(() => world.processes('site').length === 0)
  })

  test('that is ended leaves nothing running, at any moment', async ({ start }) => {
    const world = await start()
    await world.deploy('deaf', 'setInterval(() => {}, 1000)')
    await world.deploy('site')
    const ended = new AbortController()
    const proving = world.servers.prove('deaf', ended.signal).catch((error) => error)
    await until(() => world.processes('deaf').length > 0)
    ended.abort()
    expect(await proving).toBeInstanceOf(Error)
    const proof = await world.servers.prove('site', never)
    if (proof.healthy) await proof.stop()
    for (const id of ['deaf', 'site']) expect(world.processes(id)).toEqual([])
    await expect(world.servers.prove('site', ended.signal)).rejects.toThrow()
  })

  test('does not stop what became production meanwhile', async ({ start }) => {
    const world = await start()
    await world.deploy('site')
    const proof = await world.servers.prove('site', never)
    await world.servers.ready('site')
    if (proof.healthy) await proof.stop()
    expect(world.processes('site')).not.toEqual([])
  })
})

test('a sandbox that does not work is no fault of the server', async () => {
  const broken: Sandbox = {
    driver: 'none',
    tellsOutOfMemory: false,
    warning: null,
    run: () => ({
      exited: Promise.reject(new SandboxError('no namespaces')),
      connect: Promise.reject(new SandboxError('no namespaces')),
      kill: async () => {},
    }),
    makeDirectory: async () => {},
    close: async () => {},
  }
  const world = await startWorld('none', {}, { sandbox: broken })
  await world.deploy('site')
  const error = await world.servers.prove('site', new AbortController().signal).catch((error) => error)
  expect(error).toBeInstanceOf(ServerUnavailable)
  expect(error).not.toBeInstanceOf(ServerUnhealthy)
  expect(error.message).toContain('no namespaces')
  await world.stop()
})
