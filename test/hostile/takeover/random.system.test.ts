// Random sequences of what an owner, who controls the DNS of a tree of names, and two others do with them.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findServedClaim } from '../../../src/services/dns/sql/statements.ts'
import { insertToken } from '../../../src/services/tokens/tokens.ts'
import { honest, type Line } from '../../engines/verification/internet.ts'
import { poolOfEight, startVerificationWorld, type VerificationWorld } from '../../engines/verification/world.ts'

const day = 86_400_000
const deeds = [
  'claim',
  'delete',
  'check',
  'delegate',
  'undelegate',
  'text',
  'hold passes',
  'expire',
  'lose',
  'assign',
] as const

/** `who`: the owner is 0. `place`: which of the names below. */
type Step = { deed: (typeof deeds)[number]; who: number; place: number }

const namesOf = (root: string) => [root, `www.${root}`, `a.www.${root}`, `*.${root}`]

// Most sequences of deeds that are drawn alike would be of names that nobody has claimed.
const steps = fc.array(
  fc.record({
    deed: fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom('claim', 'check', 'delegate') },
      { weight: 2, arbitrary: fc.constantFrom(...deeds) },
    ),
    who: fc.nat(2),
    place: fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(3) }),
  }) as fc.Arbitrary<Step>,
  { minLength: 6, maxLength: 16 },
)

describe.each([
  { pool: undefined, size: 2 },
  { pool: poolOfEight, size: 8 },
])('whatever is done in whatever order, with a pool of $size nameservers,', ({ pool, size }) => {
  let world: VerificationWorld
  let operator: string
  const accounts: { accountId: string; token: string }[] = []
  const texts: Line[] = []
  let roots = 0

  beforeAll(async () => {
    world = await startVerificationWorld(pool)
    const { accountId, token, internet } = world
    accounts.push({ accountId, token }, await world.newOwner(), await world.newOwner())
    const staff = await insertToken(world.db, {
      accountId,
      name: 'staff',
      scopes: ['operator'],
      projectIds: [],
      expiresAt: null,
    })
    operator = staff.secret
    // A zone that is delegated hides what is delegated below it.
    const cuts = () => new Map([...internet.delegations].sort(([one], [other]) => one.length - other.length))
    for (const server of internet.top) server.behave = honest('com', () => texts, cuts)
    const { nameservers } = await world.newDomain('first.com')
    if (size > 2) await world.db.account.updateMany({ data: { nameservers } })
  })
  afterAll(() => world.stop())

  const rowOf = (who: number, name: string) =>
    world.db.domain.findFirst({ where: { name, accountId: accounts[who]!.accountId } })

  async function checkAll(names: string[]): Promise<void> {
    const found = await world.db.domain.findMany({
      where: { name: { in: names }, nextCheckAt: { not: null } },
      orderBy: { id: 'desc' },
    })
    const signal = new AbortController().signal
    for (const { id } of found) await world.verify.run({ domainId: id }, { attempt: 1, signal, async requireHeld() {} })
  }

  async function take({ deed, who, place }: Step, names: string[]): Promise<void> {
    const { internet } = world
    const name = names[place]!
    const { accountId, token } = accounts[who]!
    if (deed === 'claim') await world.newDomain(name, token).catch(() => {})
    if (deed === 'delete') await world.call('DELETE', `/domains/${name}`, { token })
    if (deed === 'check') await checkAll(names)
    if (deed === 'hold passes') await world.db.domainHold.deleteMany({ where: { name } })
    if (deed === 'expire') {
      const unprovedSince = new Date(Date.now() - 30 * day)
      await world.db.domain.updateMany({ where: { name, accountId, verified: false }, data: { unprovedSince } })
    }
    if (deed === 'lose') {
      const missed = { misses: 2, missedAt: new Date(Date.now() - day) }
      await world.db.domain.updateMany({ where: { name, accountId, verified: true }, data: missed })
    }
    // The rest is done by those who control the DNS, or the platform.
    const own = name.startsWith('*') ? null : await rowOf(0, name)
    if (deed === 'delegate' && own) {
      internet.delegations.set(name, own.nameservers)
      internet.zones.set(name, own.nameservers)
    }
    if (deed === 'undelegate') {
      internet.delegations.delete(name)
      internet.zones.delete(name)
    }
    if (deed === 'text' && own) texts.push([`_berth.${name}`, 'TXT', own.txtValue])
    if (deed === 'assign') {
      const body = { account: accounts[0]!.accountId, reason: 'it is' }
      await world.call('POST', `/operator/domains/${name}/assign`, { body, token: operator })
    }
  }

  /** The account whose records are answered at a host: of the nearest zone that is served. */
  async function answering(host: string): Promise<string | null> {
    for (let zone = host; zone.includes('.'); zone = zone.slice(zone.indexOf('.') + 1)) {
      const [served] = await findServedClaim(world.db, { name: zone })
      if (served) return (await world.db.domain.findUniqueOrThrow({ where: { id: served.id } })).accountId
    }
    return null
  }

  async function expectNothingStolen(names: string[]): Promise<void> {
    const [owner, ...others] = accounts.map(({ accountId }) => accountId)
    const stolen = { name: { in: names }, verified: true, accountId: { in: others } }
    expect(await world.db.domain.count({ where: stolen })).toBe(0)
    expect(await world.db.certificate.count({ where: { accountId: { in: others } } })).toBe(0)
    for (const host of names.filter((name) => !name.startsWith('*'))) {
      const above = names.filter((name) => name === host || host.endsWith(`.${name}`))
      const claimed = await world.db.domainClaim.count({ where: { accountId: owner!, name: { in: above } } })
      if (claimed > 0) expect([null, owner], host).toContain(await answering(host))
    }
  }

  test('nobody but the owner is verified or answered, and the owner is who delegates', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        const names = namesOf(`r${++roots}-${size}.com`)
        texts.length = 0
        world.internet.delegations.clear()
        for (const step of sequence) {
          await take(step, names)
          await expectNothingStolen(names)
        }
        // What the owner can always do in the end, whatever was done before.
        await take({ deed: 'delete', who: 0, place: 3 }, names)
        await take({ deed: 'delete', who: 0, place: 0 }, names)
        await take({ deed: 'claim', who: 0, place: 0 }, names)
        texts.length = 0
        world.internet.delegations.clear()
        await take({ deed: size > 2 ? 'delegate' : 'text', who: 0, place: 0 }, names)
        await checkAll(names)
        await expectNothingStolen(names)
        expect((await rowOf(0, names[0]!))?.verified).toBe(true)
      }),
      { numRuns: 50, endOnFailure: true },
    )
  })
})
