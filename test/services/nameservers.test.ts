import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { platformZones } from '../../src/services/dns/zones/platform-zones.ts'
import { adoptNameservers, choosePair, pairText } from '../../src/services/domains/nameservers.ts'
import { startApi, type TestApi } from '../helpers/api.ts'

const poolOf = (size: number) => Array.from({ length: size }, (_, index) => `ns${index + 1}.berth.test`)

async function startPool(size: number) {
  const api = await startApi({ NAMESERVERS: poolOf(size).join() })
  await api.newProject('site')
  const newOwner = async () => {
    const made = await api.newAccount()
    await api.call('POST', '/projects', { body: { name: 'site', repo: 'test/site' }, token: made.token })
    return made
  }
  const attach = async (name: string, token = api.token) => {
    const made = await api.call('POST', '/domains', { body: { project: 'site', name }, token })
    if (made.status !== 201) throw new Error(made.text)
    return made.body
  }
  return { api, newOwner, attach }
}

type Pool = Awaited<ReturnType<typeof startPool>>

describe('the nameservers of a domain, from a pool of eight,', () => {
  let api: TestApi
  let newOwner: Pool['newOwner']
  let attach: Pool['attach']
  beforeAll(async () => {
    ;({ api, newOwner, attach } = await startPool(8))
  })
  afterAll(() => api.stop())

  test('are two, the same in every answer, in the event and in the zone file', async () => {
    const { nameservers } = await attach('shown.com')
    expect(new Set(nameservers).size).toBe(2)
    for (const name of nameservers) expect(poolOf(8)).toContain(name)
    expect((await api.call('GET', '/domains/shown.com')).body.nameservers).toEqual(nameservers)
    expect((await api.call('GET', '/domains')).body.domains[0].nameservers).toEqual(nameservers)
    expect((await api.call('GET', '/events?type=domain.created')).body.events[0].data.nameservers).toEqual(nameservers)
    const { text } = await api.call('GET', '/dns/shown.com/zone')
    expect([...text.matchAll(/\sNS\s+(\S+)\.$/gm)].map(([, host]) => host)).toEqual(nameservers.toSorted())
    expect(text).toMatch(new RegExp(`SOA +${nameservers[0]}\\. `))
    const { body } = await api.call('GET', '/dns/shown.com/zone/status')
    expect(body.nameservers.map(({ name }: { name: string }) => name)).toEqual(nameservers)
  })

  test('have the addresses of both nameservers, and are an account’s for all its domains, also its wildcards', async () => {
    const pairs = new Set<string>()
    for (const name of ['a.com', 'b.com', 'c.b.com', '*.b.com']) pairs.add(pairText((await attach(name)).nameservers))
    expect(pairs.size).toBe(1)
    const places = [...pairs][0]!.split(' ').map((name) => poolOf(8).indexOf(name) % 2)
    expect(places.sort()).toEqual([0, 1])
  })

  test('are others for another account, also when the first has deleted its claim, and the same when it comes back', async () => {
    const owners = await Promise.all(Array.from({ length: 4 }, newOwner))
    const seen: string[] = []
    for (const { token, accountId } of owners) {
      // By themselves, all would get the same.
      await api.db.account.update({ where: { id: accountId }, data: { nameservers: poolOf(8).slice(0, 2) } })
      seen.push(pairText((await attach('passed.com', token)).nameservers))
      await api.call('DELETE', '/domains/passed.com', { token })
    }
    expect(new Set(seen).size).toBe(4)
    for (const [index, { token }] of owners.entries()) {
      expect(pairText((await attach('passed.com', token)).nameservers)).toBe(seen[index])
    }
    // Not for names above and below either.
    const { nameservers } = await attach('x.passed.com')
    expect(seen).not.toContain(pairText(nameservers))
  })

  test('are different for twelve accounts that claim a name at once, with and without a key', async () => {
    const owners = await Promise.all(Array.from({ length: 12 }, newOwner))
    const usual = { nameservers: poolOf(8).slice(0, 2) }
    await api.db.account.updateMany({ where: { id: { in: owners.map(({ accountId }) => accountId) } }, data: usual })
    const answers = await Promise.all(
      owners.map(({ token }, index) =>
        api.call('POST', '/domains', {
          body: { project: 'site', name: 'race.com' },
          token,
          headers: index % 3 === 0 ? { 'idempotency-key': `race-${index}` } : {},
        }),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(201))
    expect(new Set(answers.map(({ body }) => pairText(body.nameservers))).size).toBe(12)
    expect(answers.map(({ body }) => body.verification.reason)).toEqual(Array(12).fill(null))
  })

  test('are seldom those of another account by themselves', async () => {
    const owners = await Promise.all(Array.from({ length: 5 }, newOwner))
    const pairs = await Promise.all(owners.map(({ token }, index) => attach(`own${index}.net`, token)))
    expect(new Set(pairs.map(({ nameservers }) => pairText(nameservers))).size).toBe(5)
  })
})

describe('the nameservers of a name that more accounts have claimed than there are pairs', () => {
  test('prove nothing any more, which the 201 says', async () => {
    const { api, newOwner, attach } = await startPool(3)
    const seen = new Set<string>()
    for (let index = 0; index < 3; index++) {
      const { nameservers, verification } = await attach('crowded.com', (await newOwner()).token)
      expect(verification.reason).toBeNull()
      seen.add(pairText(nameservers))
    }
    expect(seen.size).toBe(3)
    const { nameservers, verification } = await attach('crowded.com', (await newOwner()).token)
    expect(nameservers).toHaveLength(2)
    expect(verification.reason).toMatch(
      /^Every pair of nameservers is already assigned to another account for crowded.com .* add the TXT record _berth\.crowded\.com/,
    )
    await api.stop()
  })
})

describe('with a pool of two', () => {
  test('a name above or at which another has claimed needs the TXT record, one below does not', async () => {
    const { api, newOwner, attach } = await startPool(2)
    const other = await newOwner()
    await attach('shop.mine.com', other.token)
    const first = await attach('mine.com')
    expect(first.verification.reason).toBeNull()
    for (const name of ['mine.com', 'a.mine.com']) {
      const { verification } = await attach(name, other.token)
      expect(verification.reason).toContain(
        `add the TXT record ${verification.txt.name} with the value ${verification.txt.value}`,
      )
    }
    await api.call('DELETE', '/domains/mine.com')
    expect((await attach('mine.com')).verification.reason).toContain('so nameservers cannot prove who owns mine.com')
    expect((await attach('fresh.com')).nameservers).toEqual(poolOf(2))
    await api.stop()
  })
})

describe('nameservers that have left the pool', () => {
  test('are replaced at the next start, except where they prove the domain', async () => {
    const { api, newOwner, attach } = await startPool(4)
    const other = await newOwner()
    for (const name of ['waits.com', '*.waits.com', 'proved.com', 'text.com']) await attach(name)
    await attach('waits.com', other.token)
    const verify = (name: string, method: string) =>
      api.db.domain.updateMany({ where: { name, accountId: api.accountId }, data: { verified: true, method } })
    await verify('proved.com', 'nameservers')
    await verify('text.com', 'txt')
    const before = (await api.db.domain.findFirstOrThrow({ where: { name: 'proved.com' } })).nameservers
    const pool = ['a.berth.net', 'b.berth.net', 'c.berth.net', 'd.berth.net']
    for (const _ of [1, 2]) await adoptNameservers(api.db, pool)
    const rows = await api.db.domain.findMany({ orderBy: { id: 'asc' } })
    const pairs = rows.map(({ nameservers }) => pairText(nameservers))
    const [mine, wildcard, proved, text, theirs] = pairs
    expect(rows[2]!.nameservers).toEqual(before)
    expect(proved).not.toContain('berth.net')
    for (const pair of [mine, wildcard, text, theirs]) expect(pair).toMatch(/^[a-d]\.berth\.net [a-d]\.berth\.net$/)
    expect(mine).not.toBe(theirs)
    expect(text).toBe(mine)
    expect(rows.map(({ serial }) => serial)).toEqual([2, 2, 1, 2, 2])
    const kept = await api.db.domainClaim.findMany({ where: { name: 'waits.com', accountId: api.accountId } })
    expect(kept.map(({ pair }) => pair).sort()).toEqual([mine, pairText(before)].sort())
    await api.stop()
  })
})

describe('a pair', () => {
  test('that nobody has below the name is taken first, then one that nobody has at or above it', () => {
    const pool = poolOf(3)
    const [one, two, three] = [
      [pool[0]!, pool[1]!],
      [pool[2]!, pool[1]!],
      [pool[0]!, pool[2]!],
    ]
    const choose = (here: string[][], below: string[][]) =>
      pairText(choosePair(pool, { usual: one, own: [] }, { here: here.map(pairText), below: below.map(pairText) }))
    expect(choose([], [])).toBe(pairText(one))
    expect(choose([one], [two])).toBe(pairText(three))
    expect(choose([one], [two, three])).not.toBe(pairText(one))
    expect(choose([], [one, two, three])).toBe(pairText(one))
    expect(choose([one, two, three], [])).toBe(pairText(one))
  })
})

test('every name of the pool below the domain of deployments has the address of one of the two nameservers', () => {
  const zones = platformZones(
    loadConfig({
      NAMESERVERS: Array.from({ length: 26 }, (_, index) => `${String.fromCharCode(97 + index)}.dns.berth.app`).join(),
      DEPLOYMENT_DOMAIN: 'berth.app',
      NAMESERVER_LISTEN: '192.0.2.1:53,192.0.2.2:53',
    }),
  )
  const lines = zones.get('berth.app')!.records.filter((line) => line.includes('.dns '))
  expect(lines).toHaveLength(26)
  expect(lines.slice(0, 3)).toEqual(['A 60 a.dns 192.0.2.1', 'A 60 b.dns 192.0.2.2', 'A 60 c.dns 192.0.2.1'])
})
