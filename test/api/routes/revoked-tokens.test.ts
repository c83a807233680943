// Revoked tokens stay for a while. Whoever creates and revokes tokens again and again leaves no more of them than the quota,
// so that revoking the first one visits few rows.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { lockAccount } from '../../../src/services/identity/statements.ts'
import { revokeToken } from '../../../src/services/tokens/revocation.ts'
import { rotateToken } from '../../../src/services/tokens/rotation.ts'
import { selectLine } from '../../../src/services/tokens/statements.ts'
import { type Answer, sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

type Made = { id: string; secret: string }

const max = 5

/** An account that keeps few revoked tokens, and one of its tokens in a thief's hands. */
async function newVictim() {
  const { accountId, token: owner } = await api.newAccount()
  await api.db.account.update({ where: { id: accountId }, data: { limits: { revokedTokens: max } } })
  const create = (token: string) => api.call('POST', '/tokens', { token, body: { name: 't' } })
  const rotate = (id: string, token: string) => api.call('POST', `/tokens/${id}/rotate`, { token })
  const revoke = async (id: string, token: string) => (await api.call('DELETE', `/tokens/${id}`, { token })).status
  const codeOf = async ({ secret }: Made) =>
    (await api.call('GET', '/tokens/current', { token: secret })).body.code as string | undefined
  const revoked = () => api.db.token.count({ where: { accountId, revokedAt: { not: null } } })
  const stolen: Made = (await create(owner)).body
  return { accountId, owner, create, rotate, revoke, codeOf, revoked, stolen }
}

test('of tokens that were created and revoked, the newest are kept and told that they were revoked', async () => {
  const { owner, stolen, create, revoke, revoked, codeOf } = await newVictim()
  const ended: Made[] = []
  for (let step = 0; step < 3 * max; step++) {
    const { body } = await create(stolen.secret)
    ended.push(body)
    expect(await revoke(body.id, stolen.secret)).toBe(204)
    expect(await revoked()).toBeLessThanOrEqual(max + 1)
  }
  const last = (await create(stolen.secret)).body
  expect(await revoked()).toBe(max)
  expect(await Promise.all(ended.slice(-max).map(codeOf))).toEqual(Array(max).fill('token_revoked'))
  expect(await codeOf(ended[0]!)).toBe('invalid_token')
  expect(await revoke(stolen.id, owner)).toBe(204)
  expect(await codeOf(last)).toBe('token_revoked')
})

test('a token that rotates itself again and again can do so for ever, and ends with the first one', async () => {
  const { owner, stolen, rotate, revoke, revoked, codeOf } = await newVictim()
  let current = stolen
  for (let step = 0; step < 3 * max; step++) {
    const rotated = await rotate(current.id, current.secret)
    expect(rotated.status, rotated.text).toBe(201)
    current = rotated.body
    expect(await revoked()).toBeLessThanOrEqual(max)
  }
  expect(await codeOf(current)).toBeUndefined()
  expect(await revoke(stolen.id, owner)).toBe(204)
  expect(await codeOf(current)).toBe('token_revoked')
})

test('revoked tokens that a live one came from are never forgotten; there is a limit, and one DELETE ends them all', async () => {
  const { owner, stolen, create, rotate, revoke, revoked, codeOf } = await newVictim()
  const helper: Made = (await create(stolen.secret)).body
  // Each step leaves a revoked token between the stolen one and the one that lives.
  let last: Made = (await create(stolen.secret)).body
  let refused: Answer | undefined
  for (let step = 0; step < 3 * max && !refused; step++) {
    const next = await create(last.secret)
    const replaced = next.status === 201 ? await rotate(last.id, helper.secret) : next
    if (replaced.status === 201) {
      expect(await revoke(replaced.body.id, helper.secret)).toBe(204)
      last = next.body
    } else refused = replaced
  }
  expect(refused).toMatchObject({
    status: 403,
    body: { code: 'quota_exceeded', limit: 'revokedTokens', used: max, max },
  })
  expect(await codeOf(last)).toBeUndefined()
  expect(await revoked()).toBeLessThanOrEqual(2 * max)
  expect(await revoke(stolen.id, owner)).toBe(204)
  expect([await codeOf(helper), await codeOf(last)]).toEqual(['token_revoked', 'token_revoked'])
  expect((await create(owner)).status).toBe(201)
  expect(await revoked()).toBe(max)
})

test('an invitation does not outlast the token that sent it', async () => {
  const { accountId, owner, stolen, create, rotate, revoke } = await newVictim()
  const { body: sender } = await create(stolen.secret)
  const body = { email: 'guest@example.com', role: 'viewer' }
  const sent = await api.call('POST', '/members/invitations', { token: sender.secret, body })
  expect(sent.status, sent.text).toBe(201)
  await rotate(sender.id, owner)
  for (let step = 0; step <= max; step++) {
    expect(await api.db.invitation.count({ where: { accountId } })).toBe(1)
    await revoke((await create(stolen.secret)).body.id, stolen.secret)
  }
  await create(stolen.secret)
  expect(await api.db.token.count({ where: { id: sender.id } })).toBe(0)
  expect(await api.db.invitation.count({ where: { accountId } })).toBe(0)
})

test('a rotation and a revocation read the line once, while nobody can change it', async () => {
  const { accountId, stolen } = await newVictim()
  const actor = { accountId, tokenId: stolen.id, scopes: ['*' as const], projectIds: null }
  const texts: string[] = []
  await api.db.$transaction(async (db) => {
    const recorded = new Proxy(db, {
      get(target, key: keyof typeof db) {
        if (key !== '$queryRawUnsafe') return target[key]
        return (text: string, ...values: unknown[]) => {
          texts.push(text)
          return target.$queryRawUnsafe(text, ...values)
        }
      },
    })
    await rotateToken(recorded, actor, stolen.id, { overlapSeconds: 60, revokeChildren: true })
    await revokeToken(recorded, actor, stolen.id, () => {})
  })
  const names = new Map([lockAccount, selectLine].map(({ definition }) => [definition.text, definition.name]))
  const read = texts.flatMap((text) => names.get(text) ?? [])
  expect(read).toEqual(['accounts.lock', 'tokens.line', 'accounts.lock', 'tokens.line'])
})
