// Who gets a name, in every order of claim, delegate, prove, delete, hold and claim again, below a real parent zone:
// nobody but the owner, who controls the delegation and the TXT record, is ever verified, certified, answered or served.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readEdgeHosts } from '../../../src/services/deployments/hosts.ts'
import { addressesIn, askTcp, askUdp } from '../../engines/nameserver/packets.ts'
import { isMissing } from '../../engines/nameserver/transfer/world.ts'
import { poolOfEight, startVerificationWorld, type VerificationWorld } from '../../engines/verification/world.ts'
import { until } from '../../helpers/until.ts'
import { families, type Scenario, type Step, scenariosOf, type Who } from './orders.ts'
import { type Parent, startParent } from './parent.ts'

const missing = isMissing('knotd', 'knotc')
if (missing) console.warn('knotd and knotc are not installed: the takeover suite is left out')

const evil = '192.0.2.66'
const atOnce = 8

/** How a scenario stands: who ever claimed what, and what the owner has put into the parent zone. */
type State = {
  claimed: Set<Who>
  nameservers: string[]
  txt: { name: string; value: string }
  proof: 'delegation' | 'text' | null
  /** The owner was verified after the round before, and has not deleted the domain since. */
  verified: boolean
}
type Running = Scenario & State

/** Does the work for all items, a few of them at a time. */
async function each<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items]
  const one = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: atOnce }, one))
}

describe.skipIf(missing).each([
  { pool: undefined, size: 2 },
  { pool: poolOfEight, size: 8 },
])('with a pool of $size nameservers', ({ pool, size }) => {
  let world: VerificationWorld
  let parent: Parent
  let accounts: Record<Who, { accountId: string; token: string }>

  beforeAll(async () => {
    world = await startVerificationWorld(pool)
    parent = await startParent()
    for (const [index, host] of ['a', 'b', 'c'].entries()) {
      world.internet.place(`${host}.registry.net`, `192.0.2.${100 + index}`, parent.port)
    }
    const owner = { accountId: world.accountId, token: world.token }
    accounts = { owner, thief: await world.newOwner(), other: await world.newOwner() }
    const { nameservers } = await world.newDomain('marker.com')
    for (const { token } of [accounts.thief, accounts.other])
      await world.newDomain(`marker-${token.slice(-6)}.com`.toLowerCase(), token)
    // The worst case: by themselves, all of them would get the same pair.
    if (size > 2) await world.db.account.updateMany({ data: { nameservers } })
  })
  afterAll(async () => {
    await parent?.stop()
    await world?.stop()
  })

  async function claim(scenario: Running, who: Who): Promise<void> {
    const { token } = accounts[who]
    for (const [index, name] of scenario.names[who].entries()) {
      const made = await world.newDomain(name, token).catch((error: Error) => error.message)
      if (typeof made === 'string') {
        // What another has proved, or has just given up, is refused; the owner's own name never is.
        expect(made).toMatch(who === 'owner' ? /zone_not_here/ : /domain_taken|zone_not_here/)
        continue
      }
      scenario.claimed.add(who)
      if (index > 0) continue
      if (who === 'owner') Object.assign(scenario, { nameservers: made.nameservers, txt: made.verification.txt })
      else await world.record(name, 'A', recordName(scenario, name), evil, 300, token)
    }
  }

  /** Where in its own zone an account writes what it wants the owner's visitors to see. */
  function recordName({ names }: Running, zone: string): string {
    const [wanted] = names.owner
    return wanted!.endsWith(`.${zone}`) ? wanted!.slice(0, -zone.length - 1) : '@'
  }

  async function take(scenario: Running, { who, deed }: Step): Promise<void> {
    const [name] = scenario.names[who]
    if (deed === 'claim') await claim(scenario, who)
    if (deed === 'delete') {
      for (const one of scenario.names[who].toReversed())
        await world.call('DELETE', `/domains/${one}`, { token: accounts[who].token })
    }
    if (deed === 'hold passes') await world.db.domainHold.deleteMany({ where: { name } })
    if (deed === 'delegate') {
      // From now on for good: nobody thinks of it when the domain is deleted.
      parent.delegations.set(name!, scenario.nameservers)
      world.internet.zones.set(name!, scenario.nameservers)
      scenario.proof = 'delegation'
    }
    if (deed === 'text') {
      parent.texts.set(scenario.txt.name, scenario.txt.value)
      scenario.proof = 'text'
    }
  }

  /** All claims that are not proved are checked, those of the others first. */
  async function checkAll(): Promise<void> {
    const signal = new AbortController().signal
    const run = async (where: object) => {
      const found = await world.db.domain.findMany({
        where: { ...where, verified: false, nextCheckAt: { not: null } },
        select: { id: true },
      })
      await each(found, ({ id }) => world.verify.run({ domainId: id }, { attempt: 1, signal, async requireHeld() {} }))
    }
    const accountId = accounts.owner.accountId
    await run({ accountId: { not: accountId } })
    await run({ accountId })
  }

  /** What was committed before is in effect at the nameservers after: they hear of changes in their order. */
  async function nameserversSettled(): Promise<void> {
    const { serial } = await world.db.domain.update({
      where: { id: await world.idOf('marker.com') },
      data: { serial: { increment: 1 } },
    })
    await until(() => world.nameserver.snapshot!.table.get('marker.com')?.serial === serial)
  }

  async function expectNothingStolen(running: readonly Running[], round: number): Promise<void> {
    const ids = [accounts.thief.accountId, accounts.other.accountId]
    const theirs = await world.db.domain.findMany({ where: { accountId: { in: ids } } })
    expect(theirs.filter(({ verified, ssl }) => verified || ssl !== 'PENDING').map(({ name }) => name)).toEqual([])
    expect(await world.db.certificate.count({ where: { accountId: { in: ids } } })).toBe(0)
    const keys = theirs.map(({ id }) => id)
    expect(await world.db.job.count({ where: { kind: 'issue', key: { in: keys } } })).toBe(0)
    const projects = new Set(theirs.map(({ projectId }) => projectId))
    const hosts = await readEdgeHosts(world.db)
    expect(hosts.filter(({ kind, projectId }) => kind === 'domain' && projects.has(projectId))).toEqual([])
    const ask = round % 2 === 0 ? askUdp : askTcp
    await each(running, async (scenario) => {
      if (!scenario.claimed.has('owner')) return
      const asked = new Set(
        Object.values(scenario.names).flatMap((names) => names.filter((name) => !name.startsWith('*'))),
      )
      for (const name of asked) {
        expect(addressesIn((await ask(world.ports[round % 2]!, name, 'A')).answer), name).not.toContain(evil)
      }
    })
  }

  /** The owner gets what is the owner's: by its delegation, unless another has the same nameservers, and by its text. */
  async function expectOwnersVerified(running: readonly Running[]): Promise<number> {
    const { accountId } = accounts.owner
    const found = await world.db.domain.findMany({ where: { accountId } })
    const verified = new Map(found.map((row) => [row.name, row.verified]))
    for (const scenario of running) {
      const { names, claimed, proof } = scenario
      const [name] = names.owner
      if (!verified.has(name!)) scenario.verified = false
      else if (proof !== null) {
        const rivals = (['thief', 'other'] as const).filter((who) => {
          const [theirs] = names[who]
          return claimed.has(who) && theirs !== undefined && (theirs === name || name!.endsWith(`.${theirs}`))
        })
        // Once proved, it stays so: who claims a name above it later changes nothing.
        const expected = scenario.verified || size > 2 || proof === 'text' || rivals.length === 0
        expect(verified.get(name!), `${name} ${[...claimed]}`).toBe(expected)
        scenario.verified = expected
      }
    }
    return found.filter(({ verified, name }) => verified && name !== 'marker.com').length
  }

  test.each(families.map((family) => [family.what, family] as const))('of %s', async (_what, family) => {
    const chosen = scenariosOf(family)
    const running: Running[] = chosen.map((scenario) => ({
      ...scenario,
      claimed: new Set<Who>(),
      nameservers: [],
      txt: { name: '', value: '' },
      proof: null,
      verified: false,
    }))
    const rounds = Math.max(...running.map(({ steps }) => steps.length))
    let proved = 0
    for (let round = 0; round < rounds; round++) {
      await each(running, async (scenario) => {
        const step = scenario.steps[round]
        if (step) await take(scenario, step)
      })
      await parent.publish()
      await checkAll()
      await nameserversSettled()
      await expectNothingStolen(running, round)
      proved += await expectOwnersVerified(running)
    }
    expect(proved).toBeGreaterThan(0)
    await world.db.domain.deleteMany({ where: { name: { startsWith: 'v' } } })
    await world.db.domain.deleteMany({ where: { name: { startsWith: '*' } } })
  })
})
