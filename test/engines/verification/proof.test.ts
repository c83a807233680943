import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWorker } from '../../../src/jobs/worker.ts'
import { insertToken } from '../../../src/services/tokens/tokens.ts'
import { until } from '../../helpers/until.ts'
import { askUdp } from '../nameserver/packets.ts'
import type { Line } from './internet.ts'
import { poolOfEight, startVerificationWorld, type VerificationWorld } from './world.ts'

let world: VerificationWorld
beforeAll(async () => {
  world = await startVerificationWorld()
})
afterAll(() => world.stop())

const day = 86_400_000
const fromNow = (moment: string) => new Date(moment).getTime() - Date.now()
const delegate = (name: string, hosts = world.ours) => world.internet.delegations.set(name, hosts)

/** A zone elsewhere, into which the records of claims can be written later. */
async function elsewhere(zone: string, count = 2): Promise<Line[]> {
  const lines: Line[] = []
  await world.internet.addZone(zone, count, lines)
  return lines
}

// biome-ignore lint/suspicious/noExplicitAny: a domain as the API shows it.
const txtOf = (domain: any): Line => [domain.verification.txt.name, 'TXT', domain.verification.txt.value]

describe('a domain delegated to the nameservers', () => {
  test('is verified, wants its certificate, and is looked at again in a day', async () => {
    delegate('plain.com', ['NS2.Berth.Example', 'ns1.berth.example'])
    const domain = await world.attach('plain.com')
    expect(domain).toMatchObject({
      verified: true,
      verification: { method: 'nameservers', observed: { nameservers: world.ours, txt: [] }, reason: null },
    })
    expect(domain.verification.observed.asked).toHaveLength(world.internet.top.length)
    expect(await world.events('plain.com')).toEqual(['domain.created', 'domain.verified'])
    const key = await world.idOf('plain.com')
    expect(await world.db.job.count({ where: { kind: 'issue', key } })).toBe(1)
    const nextMs = fromNow(domain.verification.nextCheckAt)
    expect(Math.abs(nextMs - day)).toBeLessThan(0.11 * day)
  })

  test('is not verified by a set with a foreign nameserver in it, or with one of ours missing, and is told which', async () => {
    await world.internet.addServer('ns.foreign.net', () => ({ code: 'REFUSED' }))
    delegate('super.com', [...world.ours, 'ns.foreign.net'])
    const more = await world.attach('super.com')
    expect(more.verified).toBe(false)
    expect(more.verification.observed.nameservers).toEqual(['ns.foreign.net', ...world.ours])
    expect(more.verification.reason).toContain(
      'but also to ns.foreign.net, whose owner could also answer for it. At your registrar, set',
    )
    delegate('partial.com', [world.ours[0]!])
    const less = await world.attach('partial.com')
    expect(less.verified).toBe(false)
    expect(less.verification.reason).toContain(
      `but not to ${world.ours[1]}. At your registrar, set its nameservers to exactly`,
    )
  })

  test('proves the names below it and its wildcard as soon as it is verified itself, and only in its own account', async () => {
    const rival = await world.newOwner()
    await world.newDomain('shop.tree.com', rival.token)
    expect(await world.attach('*.tree.com').catch((error: Error) => error.message)).toContain('zone_not_here')
    await world.newDomain('tree.com')
    world.internet.zones.set('tree.com', world.ours)
    delegate('tree.com')
    const beforeMs = Date.now()
    const early = await world.attach('*.tree.com')
    expect(early.verification.reason).toBe(
      '*.tree.com is part of tree.com, which uses our nameservers. It is verified as soon as tree.com is.',
    )
    const below = await world.attach('app.tree.com')
    expect(below).toMatchObject({ verified: false, verification: { observed: { nameservers: world.ours } } })
    const waiting = await world.db.domain.findMany({ where: { name: { in: ['app.tree.com', '*.tree.com'] } } })
    expect(waiting.every(({ nextCheckAt }) => nextCheckAt!.getTime() > beforeMs + 5_000)).toBe(true)

    expect((await world.check('tree.com')).verified).toBe(true)
    const woken = await world.db.domain.findMany({ where: { name: { in: ['app.tree.com', '*.tree.com'] } } })
    expect(woken.every(({ nextCheckAt }) => nextCheckAt!.getTime() <= Date.now())).toBe(true)
    for (const name of ['app.tree.com', '*.tree.com']) {
      expect(await world.check(name)).toMatchObject({ verified: true, verification: { method: 'nameservers' } })
    }
    const other = await world.check('shop.tree.com', rival.token)
    expect(other.verified).toBe(false)
    expect(other.verification.reason).toBe('tree.com belongs to another account, and so does shop.tree.com.')
  })

  test('does not prove a name below it that nobody attached it for', async () => {
    world.internet.zones.set('dangling.com', world.ours)
    delegate('dangling.com')
    const domain = await world.attach('blog.dangling.com')
    expect(domain.verified).toBe(false)
    expect(domain.verification.reason).toContain('Attach dangling.com first.')
  })
})

describe('a domain with its TXT record', () => {
  test('is verified wherever its nameservers are', async () => {
    const lines = await elsewhere('texts.com')
    const before = await world.attach('texts.com')
    expect(before).toMatchObject({
      verified: false,
      verification: { observed: { nameservers: ['ns1.texts.com', 'ns2.texts.com'], txt: [] } },
    })
    const { name, value } = before.verification.txt
    expect(before.verification.reason).toBe(
      '.com still delegates texts.com to ns1.texts.com and ns2.texts.com. At your registrar, set its nameservers to ' +
        `ns1.berth.example and ns2.berth.example; or add the TXT record ${name} with the value ${value}. ` +
        `There is no TXT record ${name}.`,
    )
    lines.push([name, 'TXT', 'something else'])
    expect((await world.check('texts.com')).verification.reason).toContain('does not have the value')
    lines.push(txtOf(before))
    expect(await world.check('texts.com')).toMatchObject({
      verified: true,
      verification: { method: 'txt', observed: { txt: [value, 'something else'] }, reason: null },
    })
  })

  test('is verified below another zone, even when nothing else is at its name', async () => {
    const lines = await elsewhere('host.com')
    const before = await world.attach('a.b.host.com')
    expect(before.verification.reason).toContain(
      'host.com has no name a.b.host.com. a.b.host.com is part of the zone host.com on ns1.host.com and ns2.host.com.',
    )
    lines.push(txtOf(before))
    expect(await world.check('a.b.host.com')).toMatchObject({ verified: true, verification: { method: 'txt' } })
  })

  test('is not verified by what its own account writes into a zone here, even when foreign names lead to our servers', async () => {
    delegate('vanity.com', ['ns1.vanity.com'])
    world.internet.zones.set('vanity.com', ['ns1.vanity.com'])
    world.internet.addresses.set('ns1.vanity.com', world.internet.addresses.get(world.ours[0]!)!)
    await world.newDomain('vanity.com')
    const { value } = (await world.read('vanity.com')).verification.txt
    await world.record('vanity.com', 'TXT', '_berth', `"${value}"`)
    const answer = () => askUdp(world.ports[0]!, '_berth.vanity.com', 'TXT')
    await until(async () => (await answer()).answer.length > 0)
    const { verified, verification } = await world.check('vanity.com')
    expect({ verified, txt: verification.observed.txt }).toEqual({ verified: false, txt: [] })
    expect(verification.reason).toContain('.com still delegates vanity.com to ns1.vanity.com')
  })

  test('is not verified through an alias, neither one that leads to the value nor one that leads in a circle', async () => {
    const lines: Line[] = []
    const [server] = await world.internet.addZone('alias.com', 1, lines)
    const circle = server!.behave
    const before = await world.attach('alias.com')
    const { name, value } = before.verification.txt
    server!.behave = () => ({
      answer: [
        [name, 'CNAME', 'x.service.net'],
        ['x.service.net', 'TXT', value],
      ],
    })
    expect((await world.check('alias.com')).verified).toBe(false)
    server!.behave = circle
    lines.push([name, 'CNAME', 'loop.alias.com'], ['loop.alias.com', 'CNAME', name])
    const after = await world.check('alias.com')
    expect(after.verified).toBe(false)
    expect(after.verification.reason).toContain(`${name} is an alias (CNAME) of loop.alias.com, which we do not follow`)
  })
})

describe('a name that two accounts claim', () => {
  test('belongs to neither by the nameservers that both were given, and each is told to add its TXT record', async () => {
    const lines = await elsewhere('older.com')
    const younger = await world.newOwner()
    await world.attach('older.com')
    const made = await world.newDomain('older.com', younger.token)
    expect(made.nameservers).toEqual(world.ours)
    const { name, value } = made.verification.txt
    expect(made.verification.reason).toBe(
      'Another account has added older.com or a parent of it with the same nameservers, now or in the past, so ' +
        `nameservers cannot prove who owns older.com. Where its DNS is now, add the TXT record ${name} with the value ` +
        `${value}, and switch to our nameservers only after it is verified.`,
    )
    delegate('older.com')
    for (const token of [younger.token, world.token]) {
      const { verified, verification } = await world.check('older.com', token)
      expect(verified).toBe(false)
      expect(verification.reason).toContain('so nameservers cannot prove who owns older.com. At another DNS provider,')
    }
    world.internet.delegations.set('older.com', ['ns1.older.com', 'ns2.older.com'])
    lines.push(txtOf(await world.read('older.com')))
    expect((await world.check('older.com')).verified).toBe(true)
    const lost = await world.check('older.com', younger.token)
    expect(lost).toMatchObject({ verified: false, verification: { nextCheckAt: null } })
    expect(lost.verification.reason).toContain('Another account owns this name')
    expect(await world.events('older.com', younger.accountId)).toEqual(['domain.created', 'domain.unverified'])
  })

  test('belongs to the younger one by its TXT record, and the claim of the older ends with an event', async () => {
    const lines = await elsewhere('younger.com')
    const younger = await world.newOwner()
    await world.attach('younger.com')
    lines.push(txtOf(await world.attach('younger.com', younger.token)))
    expect((await world.check('younger.com')).verified).toBe(false)
    expect((await world.check('younger.com', younger.token)).verified).toBe(true)
    expect(await world.events('younger.com')).toEqual(['domain.created', 'domain.unverified'])
    expect((await world.read('younger.com')).verification).toMatchObject({ nextCheckAt: null })
    // The delegation moves here: it is the winner's now, also for the older claim.
    delegate('younger.com')
    await world.call('POST', '/domains/younger.com/verify')
    expect((await world.check('younger.com')).verified).toBe(false)
    expect((await world.check('younger.com', younger.token)).verification).toMatchObject({ method: 'nameservers' })
  })

  test('is looked at again for the other account when the owner loses it', async () => {
    const lines = await elsewhere('moved.com')
    const next = await world.newOwner()
    const first = txtOf(await world.attach('moved.com'))
    await world.attach('moved.com', next.token)
    lines.push(first)
    await world.check('moved.com')
    lines.splice(0, 1, txtOf(await world.read('moved.com', next.token)))
    await world.db.domain.updateMany({
      where: { name: 'moved.com', verified: true },
      data: { misses: 2, missedAt: new Date(Date.now() - day) },
    })
    expect((await world.check('moved.com')).verified).toBe(false)
    expect((await world.check('moved.com', next.token)).verified).toBe(true)
  })

  test.each(['given up', 'deleted'])('needs the TXT record also once the claim of the other was %s', async (how) => {
    const name = how === 'deleted' ? 'removed.com' : 'squatted.com'
    const younger = await world.newOwner()
    await world.newDomain(name)
    if (how === 'deleted') await world.call('DELETE', `/domains/${name}`)
    // As it is after 30 days without a proof.
    else await world.db.domain.update({ where: { id: await world.idOf(name) }, data: { nextCheckAt: null } })
    await world.newDomain(name, younger.token)
    delegate(name)
    expect(await world.check(name, younger.token)).toMatchObject({ verified: false })
    const lines: Line[] = []
    await world.internet.addZone(name, 2, lines)
    lines.push(txtOf(await world.read(name, younger.token)))
    expect(await world.check(name, younger.token)).toMatchObject({ verified: true, verification: { method: 'txt' } })
  })

  test('is held for the account that removed it, whatever the DNS says to another', async () => {
    const lines = await elsewhere('held.com')
    const patient = await world.newOwner()
    lines.push(txtOf(await world.attach('held.com')))
    const claim = txtOf(await world.attach('held.com', patient.token))
    await world.check('held.com')
    expect((await world.call('DELETE', '/domains/held.com')).status).toBe(204)
    lines.push(claim)
    await world.call('POST', '/domains/held.com/verify', { token: patient.token })
    expect(await world.check('held.com', patient.token)).toMatchObject({ verified: false })
    await world.db.domainHold.deleteMany({ where: { name: 'held.com' } })
    await world.call('POST', '/domains/held.com/verify', { token: patient.token })
    expect(await world.check('held.com', patient.token)).toMatchObject({ verified: true })
  })
})

describe('a domain that the operator assigned', () => {
  test('is not lost while the DNS does not prove it, and is as any other once it does', async () => {
    const rival = await world.newOwner()
    await world.attach('assigned.com', rival.token)
    await world.attach('assigned.com')
    const { accountId } = world
    const staff = { accountId, name: 's', scopes: ['operator' as const], projectIds: [], expiresAt: null }
    const { secret } = await insertToken(world.db, staff)
    const body = { account: accountId, reason: 'it is' }
    await world.call('POST', '/operator/domains/assigned.com/assign', { body, token: secret })
    const missed = { misses: 2, missedAt: new Date(Date.now() - day) }
    await world.db.domain.update({ where: { id: await world.idOf('assigned.com') }, data: missed })
    expect(await world.check('assigned.com')).toMatchObject({ verified: true, verification: { method: 'operator' } })
    expect((await world.check('assigned.com', rival.token)).verified).toBe(false)
    delegate('assigned.com')
    const proved = await world.check('assigned.com')
    expect(proved).toMatchObject({ verified: true, verification: { method: 'nameservers', reason: null } })
    world.internet.delegations.delete('assigned.com')
    await world.db.domain.update({ where: { id: await world.idOf('assigned.com') }, data: missed })
    expect((await world.check('assigned.com')).verified).toBe(false)
  })
})

describe('many checks at once', () => {
  test('of one tree of names and two accounts leave one owner for each name, and no job behind that failed', async () => {
    const world = await startVerificationWorld(poolOfEight)
    const rival = await world.newOwner()
    const names = ['crowd.com', 'a.crowd.com', 'b.a.crowd.com', 'c.b.a.crowd.com', '*.crowd.com', '*.a.crowd.com']
    for (const name of names) {
      const { nameservers } = await world.newDomain(name)
      if (['crowd.com', 'a.crowd.com'].includes(name)) {
        world.internet.delegations.set(name, nameservers)
        world.internet.zones.set(name, nameservers)
      }
      expect((await world.newDomain(name, rival.token)).nameservers).not.toEqual(nameservers)
    }
    await world.db.job.deleteMany({ where: { kind: 'issue' } })
    const [one, two] = [0, 1].map(() =>
      startWorker(world.db, world.deps.notifications, world.options.log, { verify: world.verify }),
    )
    await until(
      async () => (await world.db.domain.count({ where: { name: { in: names }, verified: true } })) === 6,
      15_000,
    )
    await Promise.all([one!.stop(), two!.stop()])
    const owners = await world.db.domain.findMany({ where: { name: { in: names }, verified: true } })
    expect(owners.map(({ accountId }) => accountId)).toEqual(names.map(() => world.accountId))
    expect(await world.db.job.count({ where: { kind: 'verify', lastError: { not: null } } })).toBe(0)
    await world.stop()
  })
})
