import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSecondLook } from '../../../src/engines/edge/second-look.ts'
import { startWorld, type World } from './world.ts'

describe('a second look', () => {
  test('is taken only while the table is being read', () => {
    expect(createSecondLook(() => null)()).toBeNull()
    expect(createSecondLook(() => ({ settled: () => null }))()).toBeNull()
  })

  test('comes when the table is read, or after the time', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const look = createSecondLook(() => ({ settled: () => promise }))()
    resolve()
    await look
    const never = new Promise<void>(() => {})
    await createSecondLook(() => ({ settled: () => never }), { waitMs: 1, waiting: 1 })()
  })

  test('is not for more than may wait at once', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const lookAgain = createSecondLook(() => ({ settled: () => promise }), { waitMs: 60_000, waiting: 1 })
    const first = lookAgain()
    expect(first).not.toBeNull()
    expect(lookAgain()).toBeNull()
    resolve()
    await first
    expect(lookAgain()).not.toBeNull()
  })
})

describe('whoever hears of a deployment', () => {
  let world: World
  beforeAll(async () => {
    world = await startWorld()
  })
  afterAll(() => world.stop())

  test('finds it, at its own address and in production', async () => {
    for (let n = 0; n < 10; n++) {
      await world.newProject(`heard-${n}`)
      const { id, host } = await world.deploy(
        `heard-${n}`,
        { 'index.html': 'here' },
        { production: true, ready: false },
      )
      const answers = new Promise<string[]>((resolve, reject) => {
        const off = world.notifications.on('event', ({ type, subject }) => {
          if (type !== 'deployment.ready' || subject !== id) return
          off()
          const hosts = [host, `heard-${n}.localhost`]
          Promise.all(hosts.map(async (name) => (await world.get(name, '/')).text)).then(resolve, reject)
        })
      })
      await world.ready(id)
      expect(await answers).toEqual(['here', 'here'])
    }
  })

  test('is told of an unknown host at once when nothing is being read', async () => {
    expect((await world.get('nobody.localhost', '/')).status).toBe(404)
  })
})
