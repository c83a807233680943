import { expect } from 'vitest'
import { until } from '../../helpers/until.ts'
import { withEachDriverAtOnce } from './world.ts'

withEachDriverAtOnce('a server', (test) => {
  test('is started again after a crash, later each time, and its log tells', async ({ start }) => {
    const world = await start({ restartDelaysMs: [100, 400, 5_000], stableMs: 60_000 })
    await world.deploy('site')
    world.show('site')
    await world.servers.ready('site')
    await world.get('/crash')
    // No request is needed for it, and one that comes meanwhile waits.
    await until(() => world.lines('site').filter((line) => line.includes('answers after')).length === 2)
    await world.get('/crash')
    expect((await world.get('/')).status).toBe(200)
    await until(() => world.lines('site').filter((line) => line.includes('answers after')).length === 3)
    expect(world.logged.get('site')!.filter(({ text }) => text.includes('exited'))).toMatchObject([
      { stream: 'system', step: 'run', text: 'The server exited with 3; it is started again in 0.1 s' },
      { stream: 'system', step: 'run', text: 'The server exited with 3; it is started again in 0.4 s' },
    ])
  })

  test('is not restarted before its delay is over, even if it gets a request', async ({ start }) => {
    const world = await start({ restartDelaysMs: [3_600_000], stableMs: 60_000, waitTimeoutMs: 300 })
    await world.deploy('site')
    world.show('site')
    await world.servers.ready('site')
    await world.get('/crash')
    // The request times out long before the delay is over.
    expect((await world.get('/')).status).toBe(503)
    expect(world.lines('site').filter((line) => line.includes('answers after'))).toHaveLength(1)
  })

  test('that was sound long enough begins its backoff anew', async ({ start }) => {
    const world = await start({ restartDelaysMs: [50, 60_000], stableMs: 0 })
    await world.deploy('site')
    world.show('site')
    for (let crash = 0; crash < 3; crash++) {
      expect((await world.get('/')).status).toBe(200)
      await world.get('/crash')
    }
    expect((await world.get('/')).status).toBe(200)
  })

  test('comes back with the variables it had while they cannot be read', async ({ start }) => {
    let calls = 0
    const settingsOf = async (id: string) => {
      if (++calls > 1) throw new Error('the database is away')
      return { environment: { VERSION: id }, network: 'none' as const }
    }
    const world = await start({ restartDelaysMs: [50] }, { settingsOf })
    await world.deploy('site')
    world.show('site')
    await world.servers.ready('site')
    await world.get('/crash')
    expect((await world.get('/')).text).toBe('hello from site')
    expect(calls).toBe(2)
  })
})
