// Who may do what: every operation of the document, with every kind of token that must not pass, and one that must.
import { afterAll, describe, expect, test } from 'vitest'
import { newToken } from '../../src/platform/secrets/secrets.ts'
import { tokenScopes } from '../../src/schemas/tokens.ts'
import type { Scope } from '../../src/services/identity/actor.ts'
import { roles } from '../../src/services/people/roles.ts'
import { insertToken } from '../../src/services/tokens/tokens.ts'
import { sharedApi } from '../helpers/api.ts'
import { share } from '../helpers/seed.ts'
import { methodsOf, type Operation, operationsOf } from './operations.ts'
import { createSend, expectSound } from './send.ts'
import { createSnapshot } from './snapshot.ts'
import { createWorld, type Target, wireOf } from './world.ts'

const api = await sharedApi()
afterAll(() => api.stop())
const operations = operationsOf(api.app)
const send = createSend(api)
const world = await createWorld(api)
const snapshot = await createSnapshot(api)
const owner = await world.newOwner()

const mint = async (scopes: Scope[], more: { expiresAt?: Date; projectIds?: string[]; accountId?: string } = {}) =>
  insertToken(api.db, { accountId: owner.accountId, name: 't', scopes, projectIds: [], expiresAt: null, ...more })

/** One token for every set of scopes: what is refused does not wear it out. */
const minted = new Map<string, ReturnType<typeof mint>>()
function mintOnce(scopes: Scope[]) {
  const key = scopes.join()
  const found = minted.get(key) ?? mint(scopes)
  minted.set(key, found)
  return found
}

const revoked = await mint(['*', 'operator'])
await api.call('DELETE', `/tokens/${revoked.id}`, { token: owner.token })
const expired = await mint(['*', 'operator'], { expiresAt: new Date(Date.now() - 1000) })
const suspended = await world.newOwner()
await api.call('PATCH', `/operator/accounts/${suspended.accountId}`, { token: owner.token, body: { suspended: true } })

// One real target per operation, made once: nothing that is refused may wear it out.
const targets = new Map<Operation, Target>()
for (const operation of operations) targets.set(operation, await world.targetOf(operation, owner))

async function attempt(operation: Operation, token: string | null, headers: Record<string, string> = {}) {
  const { path, body } = targets.get(operation)!
  const wire = wireOf(operation, body)
  const answers = []
  for (const method of methodsOf(operation)) {
    const answer = await send({ ...wire, method, path, token, headers: { ...wire.headers, ...headers } })
    expectSound(answer, method)
    answers.push({ method, ...answer })
  }
  return answers
}

async function refused(operation: Operation, token: string | null, status: number, code: string, headers = {}) {
  const answers = await attempt(operation, token, headers)
  for (const answer of answers) {
    expect(answer.status, `${answer.method}: ${answer.text}`).toBe(status)
    if (answer.method !== 'HEAD') expect(answer.body.code).toBe(code)
  }
  return answers
}

/** Every scope that does not let its holder do what needs `scope`. */
function allBut(scope: string): Scope[] {
  const noun = scope.split(':')[0]
  return tokenScopes.filter((held) => {
    if (scope === 'operator') return held !== 'operator'
    return held !== '*' && !held.startsWith(`${noun}:`)
  })
}

const malformed = [
  'Basic dXNlcjpwYXNz',
  'Bearer',
  owner.token,
  'Bearer brt_abc',
  `Bearer ${owner.token.slice(0, -1)}${owner.token.endsWith('A') ? 'B' : 'A'}`,
  `Bearer ${owner.token} ${owner.token}`,
  `Bearer ${owner.token}x`,
  `Bearer\t${owner.token}`,
  `Bearer \u00a0${owner.token}`,
  '',
]

test('the document has operations, and each says which scope it needs or that none is', () => {
  expect(operations.length).toBeGreaterThan(40)
  for (const { scope } of operations) if (scope !== null) expect(tokenScopes).toContain(scope)
})

const before = await snapshot()

describe.each(operations)('$name', (operation) => {
  const { scope } = operation

  test('answers 401 to a request without a token, and names the scheme', async () => {
    for (const { headers } of await refused(operation, null, 401, 'missing_token')) {
      expect(headers['www-authenticate']).toBe('Bearer realm="berth"')
    }
  })

  test('answers 401 to a header that holds no token', async () => {
    for (const authorization of share(malformed, operations.indexOf(operation))) {
      for (const { headers } of await refused(operation, null, 401, 'invalid_token', { authorization })) {
        expect(headers['www-authenticate']).toBe('Bearer realm="berth", error="invalid_token"')
      }
    }
  })

  test('answers 401 to unknown, revoked and expired tokens alike, apart from the code', async () => {
    const shapes = []
    for (const [token, code] of [
      [newToken(), 'invalid_token'],
      [revoked.secret, 'token_revoked'],
      [expired.secret, 'token_expired'],
    ] as const) {
      const [answer] = await refused(operation, token, 401, code)
      const { date: _date, 'x-request-id': _id, 'content-length': _length, ...headers } = answer!.headers
      shapes.push({ fields: Object.keys(answer!.body), headers })
    }
    expect(shapes[1]).toEqual(shapes[0])
    expect(shapes[2]).toEqual(shapes[0])
  })

  test('answers 403 to a suspended account', async () => {
    await refused(operation, suspended.token, 403, 'account_suspended')
  })

  if (scope) {
    test('answers 403 to a token that holds every scope but the needed one, and names that', async () => {
      const { secret } = await mintOnce(allBut(scope))
      for (const { headers, body } of await refused(operation, secret, 403, 'insufficient_scope')) {
        expect(headers['www-authenticate']).toBe(`Bearer realm="berth", error="insufficient_scope", scope="${scope}"`)
        if (body) expect(body.requiredScope).toBe(scope)
      }
    })
  }

  if (scope?.endsWith(':write')) {
    test('answers 403 to the scope that only reads', async () => {
      const { secret } = await mintOnce([scope.replace(':write', ':read') as Scope])
      await refused(operation, secret, 403, 'insufficient_scope')
    })
  }

  test('asks for a scope that fits what it does', () => {
    if (operation.method === 'GET') expect(scope ?? ':read').toMatch(/:read$|^operator$/)
    else expect(scope).toMatch(/:write$|^operator$/)
    expect(scope === 'operator').toBe(operation.template.startsWith('/operator/'))
  })
})

test('nothing was stored by all these refusals, except the tokens that the tests made, which are counted', async () => {
  const after = await snapshot()
  const made = { token: '', account_usage: '' }
  expect({ ...after, ...made }).toEqual({ ...before, ...made })
})

// Nobody gives or takes a role without having its scopes.
const givesRoles = ['createInvitation', 'changeMember', 'removeMember', 'deleteInvitation']

describe.each(operations)('$name, with the access it needs,', (operation) => {
  const { scope } = operation
  test.each(scope?.endsWith(':read') ? [scope, scope.replace(':read', ':write')] : [scope])(
    '%s is enough',
    async (held) => {
      const { path, body, owner: maker } = await world.targetOf(operation)
      const scopes = [held ?? 'events:read', ...(givesRoles.includes(operation.id) ? roles.viewer.scopes : [])]
      const { secret: token } = await mint(scopes as Scope[], { accountId: maker.accountId })
      for (const method of methodsOf(operation)) {
        const answer = await send({ ...wireOf(operation, body), method, path, token })
        expect(answer.status, `${method} ${answer.text}`).toBeLessThan(300)
      }
    },
  )
})
