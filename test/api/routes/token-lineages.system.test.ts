// Rotation and revocation: whatever was made out of a stolen token ends with it, whoever rotated it.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { inTransaction } from '../../../src/platform/database/database.ts'
import { revokeOwnToken } from '../../../src/services/tokens/revocation.ts'
import { forgetEndedTokens } from '../../../src/services/tokens/tokens.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { startReplica } from '../../helpers/replica.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

type Made = { id: string; secret: string; lineage: string; replaces: string | null; replacedBy: string | null }

const noRights = { scopes: [], projectIds: null }
const scopes = ['tokens:write', 'projects:write', 'members:write']
const overlapSeconds = 3600

async function make(by?: Made, body: object = {}): Promise<Made> {
  const made = await api.call('POST', '/tokens', { body: { name: 't', scopes, ...body }, ...as(by) })
  expect(made.status, made.text).toBe(201)
  return made.body
}
async function rotate(old: Made, by?: Made, body: object = { overlapSeconds }): Promise<Made> {
  const made = await api.call('POST', `/tokens/${old.id}/rotate`, { body, ...as(by) })
  expect(made.status, made.text).toBe(201)
  return made.body
}
const as = (by?: Made) => (by ? { token: by.secret } : {})
const revoke = async (token: Made, by?: Made) => (await api.call('DELETE', `/tokens/${token.id}`, as(by))).status
const show = async (token: Made) => (await api.call('GET', `/tokens/${token.id}`)).body as Made
const lives = async (token: Made) => (await api.call('GET', '/tokens/current', as(token))).status === 200
const living = (...tokens: Made[]) => Promise.all(tokens.map(lives))

describe('revoking a stolen token', () => {
  test('ends what replaced it by its own request, and what that one created', async () => {
    const stolen = await make()
    const successor = await rotate(stolen, stolen)
    const child = await make(successor)
    expect(await living(stolen, successor, child)).toEqual([true, true, true])
    expect(await revoke(stolen)).toBe(204)
    expect(await living(stolen, successor, child)).toEqual([false, false, false])
    const events = await api.db.event.findMany({
      where: { type: 'token.revoked', subject: { in: [stolen.id, successor.id, child.id] } },
    })
    expect(events.map(({ subject }) => subject).sort()).toEqual([stolen.id, successor.id, child.id].sort())
  })

  test('ends a chain of any length, whichever of its tokens is named', async () => {
    for (const named of [0, 2, 4]) {
      const chain = [await make()]
      for (let step = 0; step < 4; step++) chain.push(await rotate(chain.at(-1)!, chain.at(-1)))
      const children = [await make(chain[0]), await make(chain[3])]
      // The first secret still works and rotates again, beside what has replaced it.
      const fork = await rotate(chain[0]!, chain[0])
      const all = [...chain, ...children, fork]
      expect(new Set([...chain, fork].map(({ lineage }) => lineage)).size).toBe(1)
      expect(await revoke(chain[named]!)).toBe(204)
      expect(await living(...all)).toEqual(all.map(() => false))
    }
  })

  test('ends its children where one of them replaced it', async () => {
    const stolen = await make()
    const [child, sibling] = [await make(stolen), await make(stolen)]
    const successor = await rotate(stolen, child)
    expect(await revoke(stolen)).toBe(204)
    expect(await living(child, sibling, successor)).toEqual([false, false, false])
  })

  test('ends them also when it ended before, by a rotation without an overlap', async () => {
    const stolen = await make()
    const child = await make(stolen)
    const successor = await rotate(stolen, child, {})
    expect(await living(stolen, child, successor)).toEqual([false, true, true])
    // Asked by one of them, it is gone: a script that deletes what it replaced keeps its new token.
    expect(await revoke(stolen, successor)).toBe(404)
    expect(await revoke(stolen)).toBe(204)
    expect(await living(child, successor)).toEqual([false, false])
    expect(await revoke(stolen)).toBe(404)
  })

  test('ends the tokens of others that it replaced, and leaves their owners’ own', async () => {
    const [stolen, victim] = [await make(), await make()]
    const taken = await rotate(victim, stolen)
    expect(taken.lineage).toBe(taken.id)
    expect(await revoke(stolen)).toBe(204)
    expect(await living(taken, victim)).toEqual([false, true])
  })

  test('ends them also when it has expired, and when those between are forgotten', async () => {
    const stolen = await make()
    const child = await make(stolen)
    const successor = await rotate(stolen, child)
    const chain = [child]
    for (let step = 0; step < 3; step++) chain.push(await rotate(chain.at(-1)!, chain.at(-1), {}))
    const long = new Date(Date.now() - 100 * 86_400_000)
    await api.db.token.update({ where: { id: stolen.id }, data: { expiresAt: long } })
    await api.db.token.updateMany({
      where: { id: { in: chain.slice(0, -1).map(({ id }) => id) } },
      data: { revokedAt: long },
    })
    await forgetEndedTokens(api.db)
    const kept = await api.db.token.findMany({ where: { id: { in: [stolen, ...chain].map(({ id }) => id) } } })
    expect(kept.map(({ id }) => id).sort()).toEqual([stolen.id, child.id, chain.at(-1)!.id].sort())
    expect(await living(successor, chain.at(-1)!)).toEqual([true, true])
    expect(await revoke(stolen)).toBe(204)
    expect(await living(successor, chain.at(-1)!)).toEqual([false, false])
  })

  test('leaves a rotation that is sent again with its Idempotency-Key the answer it had, and nothing alive', async () => {
    const stolen = await make()
    const again = () => {
      const headers = { 'idempotency-key': `rotate-${stolen.id}` }
      return api.call('POST', `/tokens/${stolen.id}/rotate`, { body: { overlapSeconds }, headers })
    }
    const { body: successor } = await again()
    expect(await revoke(successor)).toBe(204)
    expect((await again()).body).toEqual(successor)
    expect(await living(successor, stolen)).toEqual([false, true])
    expect(await api.db.token.count({ where: { replacesId: stolen.id } })).toBe(1)
  })

  test('withdraws the invitations that any of them sent', async () => {
    const invite = async (by: Made) => {
      const body = { email: `${crypto.randomUUID()}@example.com`, role: 'viewer' }
      const sent = await api.call('POST', '/members/invitations', { body, ...as(by) })
      expect(sent.status, sent.text).toBe(201)
      return sent.body.id as string
    }
    const stolen = await make(undefined, { scopes: ['*'] })
    const first = await invite(stolen)
    const successor = await rotate(stolen, stolen)
    const sent = [first, await invite(successor), await invite(await make(successor, { scopes: ['*'] }))]
    expect(await api.db.invitation.count({ where: { id: { in: sent } } })).toBe(3)
    await revoke(stolen)
    expect(await api.db.invitation.count({ where: { id: { in: sent } } })).toBe(0)
  })

  test('lets none escape that is rotated or created meanwhile', async () => {
    for (let round = 0; round < 6; round++) {
      const stolen = await make()
      const [mate, child] = [await rotate(stolen, stolen), await make(stolen)]
      const thieves = [stolen, mate, child]
      const tries = Array.from({ length: 24 }, (_, index) => {
        const by = thieves[index % 3]!
        if (index % 4 === 3) return api.call('POST', '/tokens', { body: { name: 't', scopes }, ...as(by) })
        const old = thieves[Math.floor(index / 3) % 3]!
        return api.call('POST', `/tokens/${old.id}/rotate`, { body: { overlapSeconds }, ...as(by) })
      })
      const [revoked, ...made] = await Promise.all([
        (async () => {
          await tries[round * 3]
          return revoke(stolen)
        })(),
        ...tries,
      ])
      expect(revoked).toBe(204)
      const escaped = made.filter(({ status }) => status === 201).map(({ body }) => body as Made)
      expect(escaped.length).toBeGreaterThan(0)
      expect(await living(...thieves, ...escaped)).toEqual([...thieves, ...escaped].map(() => false))
    }
  })

  test('has other servers forget all of them at once', async () => {
    const other = await startReplica(api)
    const stolen = await make()
    const successor = await rotate(stolen, stolen)
    const all = [stolen, successor, await make(successor)]
    const ask = ({ secret }: Made) =>
      other.app.inject({ url: '/api/tokens/current', headers: { authorization: `Bearer ${secret}` } })
    const statuses = async () => (await Promise.all(all.map(ask))).map(({ statusCode }) => statusCode)
    expect(await statuses()).toEqual([200, 200, 200])
    await revoke(stolen)
    await until(async () => (await statuses()).every((status) => status === 401))
    await other.stop()
  })
})

describe('the owner’s own rotation', () => {
  test('keeps its successor when the old token is revoked, and ends what the old one created', async () => {
    const old = await make()
    const before = await make(old)
    const successor = await rotate(old)
    const during = await make(old)
    expect(successor).toMatchObject({ lineage: successor.id, replaces: old.id, replacedBy: null })
    expect(await revoke(old)).toBe(204)
    expect(await living(old, before, during, successor)).toEqual([false, false, false, true])
  })

  test('also where that token had replaced itself before', async () => {
    const stolen = await make()
    const mate = await rotate(stolen, stolen)
    const successor = await rotate(mate)
    expect(await revoke(stolen)).toBe(204)
    expect(await living(stolen, mate, successor)).toEqual([false, false, true])
  })

  test('leaves the old token its overlap when the new one is revoked', async () => {
    const old = await make()
    const successor = await rotate(old)
    const child = await make(successor)
    expect(await revoke(successor)).toBe(204)
    expect(await living(old, successor, child)).toEqual([true, false, false])
  })

  test('ends the old one alone where that is given an earlier end', async () => {
    const old = await make()
    const successor = await rotate(old, old)
    const expiresAt = new Date(Date.now() + 60_000).toISOString()
    expect((await api.call('PATCH', `/tokens/${old.id}`, { body: { expiresAt } })).status).toBe(200)
    expect((await show(successor)) as object).toMatchObject({ expiresAt: null, lineage: old.id })
  })
})

test('a token shows its lineage, what it replaced and what replaced it', async () => {
  const first = await make()
  expect(first).toMatchObject({ lineage: first.id, replaces: null, replacedBy: null })
  const second = await rotate(first, first)
  expect(second).toMatchObject({ lineage: first.id, replaces: first.id, replacedBy: null })
  const third = await rotate(second, second)
  const { body } = await api.call('GET', '/tokens')
  const listed = (id: string) => body.tokens.find((token: Made) => token.id === id)
  expect(listed(first.id)).toMatchObject({ lineage: first.id, replaces: null, replacedBy: second.id })
  expect(listed(second.id)).toMatchObject({ lineage: first.id, replaces: first.id, replacedBy: third.id })
  expect(listed(third.id)).toMatchObject({ lineage: first.id, replaces: second.id, replacedBy: null })
})

test('a rotation with revokeChildren ends all others of the lineage, and none that has more than the caller', async () => {
  const stolen = await make()
  const thief = await rotate(stolen, stolen)
  const child = await make(thief)
  const { id } = await rotate(stolen, stolen, { overlapSeconds, revokeChildren: true })
  expect(await living(thief, child, stolen)).toEqual([false, false, true])
  expect((await show(stolen)).replacedBy).toBe(id)

  const wide = await make(undefined, { scopes: ['tokens:write', 'dns:write'] })
  const narrow = await rotate(wide, wide)
  await api.call('PATCH', `/tokens/${narrow.id}`, { body: { scopes: ['tokens:write'] } })
  const body = { revokeChildren: true }
  for (const refused of [
    await api.call('POST', `/tokens/${narrow.id}/rotate`, { body, ...as(narrow) }),
    await api.call('DELETE', `/tokens/${narrow.id}`, as(await make(undefined, { scopes: ['tokens:write'] }))),
  ]) {
    expect(refused).toMatchObject({ status: 403, body: { requiredScope: 'dns:write' } })
  }
  expect(await living(wide, narrow)).toEqual([true, true])
})

test('whoever signs out ends their token and what came from it, and not the one that it replaced', async () => {
  const old = await make()
  const own = await rotate(old, old)
  const child = await make(own)
  const next = await rotate(own, own)
  const successor = await rotate(next, next)
  await inTransaction(api.db, (db) => revokeOwnToken(db, { accountId: api.accountId, tokenId: own.id, ...noRights }))
  api.deps.tokenDirectory.forgetAccount(api.accountId)
  expect(await living(old, own, child, next, successor)).toEqual([true, false, false, false, false])
})
