// A zone below another one that is here too: the DS goes into the zone above by itself, follows a rollover, and leaves it.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask } from '../../../src/engines/verification/ask.ts'
import { createSigning, type Signing } from './signing.ts'
import { startVerificationWorld, type VerificationWorld } from './world.ts'

let world: VerificationWorld
let signing: Signing
beforeAll(async () => {
  world = await startVerificationWorld()
  signing = createSigning(world)
})
afterAll(() => world.stop())

/** The DS records of a name that each nameserver has, as the zone above says. */
async function dsAt(name: string): Promise<string[][]> {
  return Promise.all(
    world.ports.map(async (port) => {
      const bounds = { signal: AbortSignal.timeout(5_000), deadlineMs: performance.now() + 5_000 }
      const answer = await ask({ host: '127.0.0.1', port }, name, 'DS', bounds)
      return typeof answer === 'string' ? [answer] : answer.answer.map(({ data }) => data)
    }),
  )
}
const shows = (name: string, ...ds: string[]) => expect.poll(() => dsAt(name), { timeout: 20_000 }).toEqual([ds, ds])

/** A zone below a signed one, itself signed; the DS that we put there. */
async function signedBelow(name: string, token?: string): Promise<string> {
  expect(await world.attach(name, token)).toMatchObject({ verified: true })
  expect(await signing.check(name)).toMatchObject({ state: 'SIGNING' })
  await signing.later(name, 2)
  await signing.served(name, 1)
  const { state, ds, reason } = await signing.check(name)
  expect(state).toBe('AWAITING_DS')
  expect(reason).toContain(`We add the DS record to ${name.slice(name.indexOf('.') + 1)}`)
  return ds[0].text
}

describe('a domain below another one that is here', () => {
  test('is signed, its DS is added to the zone above, replaced in a rollover, and removed before its signatures', async () => {
    await signing.signed('above.com')
    const name = 'sub.above.com'
    const first = await signedBelow(name)
    await shows(name, first)
    expect(await signing.check(name)).toMatchObject({ state: 'ACTIVE', parent: { ds: [first], matches: true } })

    await world.call('POST', `/dns/${name}/dnssec/rollover`)
    await signing.later(name, 2)
    await signing.served(name, 2)
    const { ds: announced } = await signing.check(name)
    expect(announced[0].text).not.toBe(first)
    await shows(name, announced[0].text)
    await signing.check(name)
    await signing.later(name, 2)
    expect((await signing.check(name)).keys).toMatchObject([{ tag: announced[0].keyTag, state: 'ACTIVE' }])
    await shows(name, announced[0].text)

    expect(await signing.put(name, { enabled: false })).toMatchObject({ state: 'LEAVING' })
    await shows(name)
    expect(await signing.check(name)).toMatchObject({ state: 'LEAVING' })
    await signing.later(name, 1)
    expect(await signing.check(name)).toMatchObject({ state: 'UNSIGNED', keys: [] })
  })

  test('waits for the zone above while that is not signed', async () => {
    await signing.delegated('plain.com')
    await signing.put('plain.com', { enabled: false })
    await world.attach('sub.plain.com')
    const found = await signing.check('sub.plain.com')
    expect(found).toMatchObject({ state: 'UNSIGNED' })
    expect(found.reason).toContain('plain.com, which uses our nameservers and is not signed')
    await signing.put('plain.com', { enabled: true })
    await signing.check('plain.com')
    expect(await signing.check('sub.plain.com')).toMatchObject({ state: 'SIGNING' })
  })

  test('gets no DS where the zone above has one of its own, or delegates it elsewhere', async () => {
    await signing.signed('own.com')
    const foreign = `12345 13 2 ${'AB'.repeat(32)}`
    for (const host of world.ours) await world.record('own.com', 'NS', 'sub', host)
    const ds = await signedBelow('sub.own.com')
    await shows('sub.own.com', ds)
    const made = await world.record('own.com', 'DS', 'sub', foreign)
    await shows('sub.own.com', foreign)
    await world.call('DELETE', `/dns/own.com/records/${made.body.id}`)
    await shows('sub.own.com', ds)
    await world.record('own.com', 'NS', 'sub', 'ns.example.net')
    await shows('sub.own.com')
  })

  test('of another account gets it only where the zone above delegates it to these nameservers', async () => {
    const { token, accountId } = await world.newOwner()
    await signing.signed('two.com')
    await signing.signed('sub.two.com')
    await world.db.domain.update({ where: { id: await world.idOf('sub.two.com') }, data: { verified: false } })
    await shows('sub.two.com')
    const data = { verified: true, accountId }
    await world.db.domain.update({ where: { id: await world.idOf('sub.two.com') }, data })
    await shows('sub.two.com')
    for (const host of world.ours) await world.record('two.com', 'NS', 'sub', host)
    const { body } = await world.call('GET', '/dns/sub.two.com/dnssec', { token })
    await shows('sub.two.com', body.ds[0].text)
  })

  test('takes its DS along when it is deleted', async () => {
    await signing.signed('gone.com')
    await shows('sub.gone.com', await signedBelow('sub.gone.com'))
    await world.call('DELETE', '/domains/sub.gone.com')
    await shows('sub.gone.com')
  })
})
