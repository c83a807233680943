import { afterEach, expect, test } from 'vitest'
import { ServerUnavailable, ServerUnhealthy } from '../../../src/engines/servers/failures.ts'
import { type Sandbox, SandboxError } from '../../../src/sandbox/sandbox.ts'
import { until } from '../../helpers/until.ts'
import { processesWith, startWorld, type World, withEachDriver } from './world.ts'

withEachDriver('a server', (driver) => {
  let world: World
  afterEach(() => world.stop())

  test('is started once for all who ask, and is ready when it answers', async () => {
    world = await startWorld(driver)
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

  test('runs by npm start, with PORT and NODE_ENV', async () => {
    world = await startWorld(driver, {}, { start: undefined })
    await world.deploy(
      'site',
      `import { createServer } from 'node:http'
       createServer((_, response) => response.end(process.env.NODE_ENV)).listen(process.env.PORT)`,
    )
    world.show('site')
    expect((await world.get('/')).text).toBe('production')
  })

  test('that answers with errors takes no traffic until it is well', async () => {
    world = await startWorld(driver)
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

  test('that never listens is not ready, and the reason says so with its output', async () => {
    world = await startWorld(driver, { startMs: 5_000 })
    await world.deploy('deaf', `console.log('my key is ' + process.env.API_KEY); setInterval(() => {}, 1000)`)
    await world.deploy(
      'sick',
      `import { createServer } from 'node:http'
       createServer((_, response) => response.writeHead(500).end()).listen(process.env.PORT)`,
    )
    const [deaf, sick] = await Promise.all(
      ['deaf', 'sick'].map((id) => world.servers.ready(id).catch((error) => error)),
    )
    expect(deaf).toBeInstanceOf(ServerUnavailable)
    expect(deaf.message).toBe(
      'The server was not healthy within 5 s: nothing listens at the port of the variable PORT. ' +
        'Its last output:\nmy key is ***',
    )
    expect(sick.message).toContain('it answers GET / with 500. It printed nothing.')
    expect(processesWith('key-of-deaf')).toEqual([])
    await world.deploy('broken', `throw new Error('no database')`)
    await expect(world.servers.ready('broken')).rejects.toThrow(/exited with 1\. Its last output:(.|\n)*no database/)
    await expect(world.servers.ready('absent')).rejects.toThrow('not on this machine')
    world.show('broken')
    expect(await world.get('/')).toMatchObject({ status: 503, headers: { 'retry-after': '5' } })
  })

  test('on demand is stopped when idle and makes room; in production it stays', async () => {
    world = await startWorld(driver, { idleMs: 300, onDemand: 1 })
    for (const id of ['production', 'first', 'second']) await world.deploy(id)
    await world.servers.ready('production')
    for (const id of ['first', 'second']) {
      world.show(id)
      expect((await world.get('/')).text).toBe(`hello from ${id}`)
    }
    expect(processesWith('key-of-first')).toEqual([])
    await until(() => processesWith('key-of-second').length === 0)
    expect(processesWith('key-of-production')).not.toEqual([])
    expect((await world.get('/')).text).toBe('hello from second')
  })

  test('leaves no process behind when all is closed, whatever it was doing', async () => {
    // Whatever else could end the three of them is far away.
    const later = { startMs: 600_000, drainMs: 600_000, restartDelaysMs: [600_000] }
    world = await startWorld(driver, { closeMs: 200, ...later })
    for (const id of ['busy', 'crashed', 'starting']) await world.deploy(id)
    await world.deploy('starting', 'setInterval(() => {}, 1000)')
    await world.servers.ready('busy')
    await world.servers.ready('crashed')
    world.show('crashed')
    await world.get('/crash')
    const waiting = world.get('/')
    await until(() => processesWith('key-of-crashed').length === 0)
    const starting = world.servers.ready('starting').catch((error) => error)
    await until(() => processesWith('key-of-starting').length > 0)
    world.show('busy')
    const endless = world.get('/endless').catch((error) => error.code)
    const socket = new WebSocket(`ws://127.0.0.1:${world.port}/`)
    await new Promise((resolve) => socket.addEventListener('open', resolve))
    await world.servers.close()
    for (const id of ['busy', 'crashed', 'starting']) expect(processesWith(`key-of-${id}`)).toEqual([])
    expect(await starting).toBeInstanceOf(ServerUnavailable)
    expect((await waiting).status).toBe(503)
    expect(await endless).toBe('ECONNRESET')
    expect((await world.get('/')).status).toBe(503)
    await expect(world.servers.ready('busy')).rejects.toThrow('stopping')
  })
})

withEachDriver('a server of production', (driver) => {
  let world: World
  afterEach(() => world.stop())

  test('whose start fails is started again without a request', async () => {
    world = await startWorld(driver, { restartDelaysMs: [10] })
    await world.deploy('site', `throw new Error('not yet')`)
    world.servers.keep('site')
    await expect(world.servers.ready('site')).rejects.toThrow('not yet')
    await world.deploy('site')
    await until(() => world.lines('site').some((line) => line.includes('answers after')))
    world.show('site')
    expect((await world.get('/')).status).toBe(200)
  })

  test('is not counted among those on demand, whoever asks first', async () => {
    world = await startWorld(driver, { onDemand: 0 })
    await world.deploy('site')
    world.show('site')
    expect((await world.get('/')).status).toBe(503)
    world.servers.keep('site')
    expect((await world.get('/')).status).toBe(200)
  })
})

withEachDriver('a proof', (driver) => {
  let world: World
  const never = new AbortController().signal
  afterEach(() => world.stop())

  test('of a server that answers holds it up until it is released', async () => {
    world = await startWorld(driver, { idleMs: 50 })
    await world.deploy('site')
    const proof = await world.servers.prove('site', never)
    if (!proof.healthy) throw new Error(proof.reason)
    expect(processesWith('key-of-site')).not.toEqual([])
    await proof.release()
    await until(() => processesWith('key-of-site').length === 0)
  })

  test('that is ended leaves nothing running, at any moment', async () => {
    world = await startWorld(driver)
    await world.deploy('deaf', 'setInterval(() => {}, 1000)')
    await world.deploy('site')
    const ended = new AbortController()
    const proving = world.servers.prove('deaf', ended.signal).catch((error) => error)
    await until(() => processesWith('key-of-deaf').length > 0)
    ended.abort()
    expect(await proving).toBeInstanceOf(Error)
    const proof = await world.servers.prove('site', never)
    if (proof.healthy) await proof.stop()
    for (const id of ['deaf', 'site']) expect(processesWith(`key-of-${id}`)).toEqual([])
    await expect(world.servers.prove('site', ended.signal)).rejects.toThrow()
  })

  test('does not stop what became production meanwhile', async () => {
    world = await startWorld(driver)
    await world.deploy('site')
    const proof = await world.servers.prove('site', never)
    await world.servers.ready('site')
    if (proof.healthy) await proof.stop()
    expect(processesWith('key-of-site')).not.toEqual([])
  })
})

test('a sandbox that does not work is no fault of the server', async () => {
  const broken: Sandbox = {
    driver: 'none',
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
