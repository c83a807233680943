import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createVerification } from '../../../src/engines/verification/verification.ts'
import { LostLease } from '../../../src/platform/database/lease.ts'
import { assignDomain } from '../../../src/services/domains/assignment.ts'
import { markVerified } from '../../../src/services/domains/states.ts'
import { readClaim, settleCheck } from '../../../src/services/verification/index.ts'
import { type Behaviour, honest, type Line } from './internet.ts'
import { startVerificationWorld, type VerificationWorld } from './world.ts'

let world: VerificationWorld
let honestTop: Behaviour
beforeAll(async () => {
  world = await startVerificationWorld()
  honestTop = world.internet.top[0]!.behave
})
afterAll(() => world.stop())
afterEach(() => {
  for (const server of world.internet.top) server.behave = honestTop
  world.internet.breakResolver(null)
})

const servfail: Behaviour = () => ({ code: 'SERVFAIL', aa: false })
const delegate = (name: string, hosts = world.ours) => world.internet.delegations.set(name, hosts)
const say = (lines: Line[]): Behaviour => {
  return (name, type) => ({ answer: lines.filter((line) => line[0] === name && line[1] === type) })
}

describe('a server that cannot be asked', () => {
  test.each<[string, Behaviour, string]>([
    ['that fails', servfail, '3 failed (SERVFAIL)'],
    ['that refuses', () => ({ code: 'REFUSED', aa: false }), '3 refused to answer'],
    ['that does not have the zone', () => ({ aa: false }), '3 did not serve the zone'],
    ['that talks rubbish', () => Buffer.alloc(40, 0xc0), '3 sent a malformed answer'],
    ['that is silent', () => null, '3 did not answer in time'],
  ])('%s says nothing about the domain', async (title, behave, said) => {
    const name = `${title.replaceAll(' ', '-')}.com`
    delegate(name)
    for (const server of world.internet.top) server.behave = behave
    const { verified, verification } = await world.attach(name)
    expect({ verified, observed: verification.observed }).toEqual({
      verified: false,
      observed: { nameservers: [], txt: [], asked: [] },
    })
    expect(verification.reason).toBe(
      `Too few nameservers of .com answered for ${name}: ${said}. Your settings may be fine; we will retry automatically.`,
    )
    expect(Date.parse(verification.nextCheckAt)).toBeGreaterThan(Date.parse(verification.checkedAt))
    for (const server of world.internet.top) server.behave = honestTop
    expect((await world.check(name)).verified).toBe(true)
  })

  test('is outvoted by two that can', async () => {
    delegate('absent.com')
    world.internet.top[1]!.behave = servfail
    expect((await world.attach('absent.com')).verified).toBe(true)
  })

  test('leaves it open, when only one of three can', async () => {
    delegate('lonely.com')
    world.internet.top[0]!.behave = world.internet.top[1]!.behave = servfail
    const { verified, verification } = await world.attach('lonely.com')
    expect(verified).toBe(false)
    expect(verification.reason).toContain('Too few nameservers of .com answered for lonely.com: 2 failed')
  })

  test('leaves a domain unverified when it is the resolver, with a reason that says so', async () => {
    delegate('unresolved.com')
    world.internet.breakResolver(servfail)
    const { verified, verification } = await world.attach('unresolved.com')
    expect(verified).toBe(false)
    expect(verification.reason).toContain('We could not find the zone of the domain: the last resolver')
  })

  test('leaves open whether a TXT record is there, when its delegation is lame', async () => {
    const [one, two] = await world.internet.addZone('lame.com', 2, [])
    one!.behave = two!.behave = () => ({ code: 'REFUSED', aa: false })
    const { verified, verification } = await world.attach('lame.com')
    expect(verified).toBe(false)
    expect(verification.reason).toContain('did not answer for the TXT record _berth.lame.com: 2 refused to answer.')
  })
})

describe('a check that comes late', () => {
  const signal = new AbortController().signal
  const lost = { attempt: 1, signal, requireHeld: () => Promise.reject(new LostLease()) }

  test('of a worker that lost it to another one proves nothing', async () => {
    await world.newDomain('stale.com')
    delegate('stale.com')
    await expect(world.verify.run({ domainId: await world.idOf('stale.com') }, lost)).rejects.toThrow(LostLease)
    expect(await world.read('stale.com')).toMatchObject({ verified: false, verification: { checkedAt: null } })
    expect((await world.check('stale.com')).verified).toBe(true)
    await expect(world.dnssec.run({ domainId: await world.idOf('stale.com') }, lost)).rejects.toThrow(LostLease)
  })

  test('proves no name below one that went to another account meanwhile', async () => {
    const { db, config } = world
    const other = await world.newOwner()
    for (const token of [world.token, other.token]) await world.newDomain('lost.com', token)
    const observed = { nameservers: [], txt: [] }
    await markVerified(db, config, await world.idOf('lost.com'), { method: 'txt', observed })
    await world.newDomain('below.lost.com')
    const claim = (await readClaim(db, config, await world.idOf('below.lost.com')))!
    const operator = { accountId: other.accountId, tokenId: 'tok_desk', scopes: [], projectIds: null }
    const input = { account: other.accountId, reason: 'the registrar says so' }
    await assignDomain(db, config, operator, { path: 'lost.com', input })
    const found = { outcome: 'proved', method: 'nameservers', observed } as const
    await settleCheck(db, { ...config, async guard() {} }, claim, found)
    expect((await world.read('below.lost.com')).verified).toBe(false)
  })
})

describe('a server that speaks from a cache', () => {
  test('and not for the zone proves nothing', async () => {
    const [server] = await world.internet.addZone('cache.com', 1, [])
    const before = await world.attach('cache.com')
    const { name, value } = before.verification.txt
    server!.behave = () => ({ aa: false, answer: [[name, 'TXT', value]] })
    const { verified, verification } = await world.check('cache.com')
    expect(verified).toBe(false)
    expect(verification.reason).toContain('1 did not serve the zone')
  })
})

describe('one lying server of three', () => {
  test('cannot make a delegation', async () => {
    await world.internet.addZone('liar-a.com', 1, [])
    world.internet.top[2]!.behave = (name) => ({
      aa: false,
      authority: world.ours.map((host): Line => [name, 'NS', host]),
    })
    const domain = await world.attach('liar-a.com')
    expect(domain.verified).toBe(false)
    expect(domain.verification.observed.nameservers).toEqual(['ns1.liar-a.com'])
  })

  test('cannot take a delegation away', async () => {
    delegate('liar-b.com')
    world.internet.top[2]!.behave = () => ({ code: 'NXDOMAIN' })
    expect((await world.attach('liar-b.com')).verified).toBe(true)
  })

  test('can neither make nor take a TXT record, and one of two leaves it open', async () => {
    const lines: Line[] = []
    const servers = await world.internet.addZone('liar-c.com', 3, lines)
    const before = await world.attach('liar-c.com')
    const { name, value } = before.verification.txt
    servers[1]!.behave = say([[name, 'TXT', value]])
    const made = await world.check('liar-c.com')
    expect(made).toMatchObject({ verified: false, verification: { observed: { txt: [value] } } })
    lines.push([name, 'TXT', value])
    servers[1]!.behave = say([])
    servers[2]!.behave = servfail
    const open = await world.check('liar-c.com')
    expect(open.verified).toBe(false)
    expect(open.verification.reason).toContain('Only some of the nameservers show the TXT record')
    servers[2]!.behave = servers[0]!.behave
    expect((await world.check('liar-c.com')).verified).toBe(true)
  })

  test('that is one of two is told apart from a domain that is elsewhere', async () => {
    delegate('split.com')
    world.internet.top[1]!.behave = servfail
    world.internet.top[2]!.behave = () => ({ code: 'NXDOMAIN' })
    const { verified, verification } = await world.attach('split.com')
    expect(verified).toBe(false)
    expect(verification.reason).toContain('The nameservers of .com disagree about split.com')
  })
})

describe('an answer', () => {
  test('that does not fit into a datagram is asked for again over TCP', async () => {
    delegate('large.com')
    for (const server of world.internet.top) {
      server.behave = (name, type, tcp) => (tcp ? honestTop(name, type, tcp) : { truncated: true })
    }
    expect((await world.attach('large.com')).verified).toBe(true)
  })

  test('that a name is not there tells to register it', async () => {
    const { verified, verification } = await world.attach('nowhere.com')
    expect(verified).toBe(false)
    expect(verification.reason).toBe(
      '.com has no name nowhere.com. It is not registered, or not published yet. Register it and set its nameservers ' +
        'to ns1.berth.example and ns2.berth.example.',
    )
  })

  test('with a hostile text is shown harmless and short', async () => {
    const lines: Line[] = []
    await world.internet.addZone('hostile.com', 1, lines)
    for (let n = 0; n < 30; n++) lines.push(['_berth.hostile.com', 'TXT', `\0${n}<script>\x1b[31m${'x'.repeat(2000)}`])
    const { observed } = (await world.attach('hostile.com')).verification
    expect(observed.txt).toHaveLength(20)
    expect(observed.txt[0]).toMatch(/^\\000\d+<script>\\027\[31mx+$/)
    expect(observed.txt.every((text: string) => text.length <= 300)).toBe(true)
  })

  test('that names private addresses sends nobody there in production', async () => {
    const zone = honest('inner.com', () => [])
    const inner = await world.internet.addServer('ns.inner.com', zone)
    delegate('inner.com', ['ns.inner.com'])
    await world.attach('inner.com')
    expect(inner.asked).not.toEqual([])
    inner.asked.length = 0
    const { verify } = createVerification({
      ...world.options,
      config: { ...world.config, production: true },
      // The servers of .com are at addresses of documentation; in this world they alone are on the public internet.
      reach: world.internet.reach,
    })
    await world.call('POST', '/domains/inner.com/verify')
    const signal = new AbortController().signal
    for (const server of world.internet.top) server.asked.length = 0
    await verify.run({ domainId: await world.idOf('inner.com') }, { attempt: 1, signal, async requireHeld() {} })
    expect([...inner.asked, ...world.internet.top.flatMap(({ asked }) => asked)]).toEqual([])
    expect((await world.read('inner.com')).verification.reason).toContain('had no usable address')
  })
})
