// Random families of tokens: whatever is made, rotated and revoked, nobody gets a right or a time that it had not.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Token } from '../../src/generated/client.ts'
import { tokenScopes } from '../../src/schemas/tokens.ts'
import { createAccount } from '../../src/services/accounts/accounts.ts'
import { allows, type Scope } from '../../src/services/identity/actor.ts'
import { sharedApi, type TestApi } from '../helpers/api.ts'
import { valuesToTry } from '../helpers/seed.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

const hourMs = 3_120_000
const projects = ['one', 'two', 'three']

const scopes = fc.option(
  fc.uniqueArray(fc.constantFrom<Scope>('*', 'operator', 'dns:read', 'dns:write', 'tokens:write', 'tokens:write'), {
    minLength: 1,
    maxLength: 4,
  }),
  { nil: undefined, freq: 3 },
)
const narrowing = fc.option(fc.subarray(projects, { minLength: 1 }), { nil: undefined, freq: 2 })
const hours = fc.oneof(fc.constant(undefined), fc.constant(null), fc.integer({ min: 1, max: 50 }))
const who = fc.nat(30)
const commands = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('create' as const), by: who, scopes, narrowing, hours }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('rotate' as const),
        by: who,
        target: who,
        overlapSeconds: fc.constantFrom(0, 600, 604_800),
        revokeChildren: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('revoke' as const), by: who, target: who }) },
  ),
  { minLength: 8, maxLength: 30 },
)

type Step = typeof commands extends fc.Arbitrary<(infer T)[]> ? T : never
const all = { scopes: undefined, narrowing: undefined, hours: undefined }
const overlap = { overlapSeconds: 600, revokeChildren: false } as const

/** Something of everything, whatever chance brings: a child rotates its sibling, and another asks for too much. */
const everything: Step[] = [
  { kind: 'create', by: 0, ...all },
  { kind: 'create', by: 0, ...all },
  { kind: 'rotate', by: 1, target: 2, ...overlap },
  { kind: 'create', by: 0, ...all, scopes: ['tokens:write'] },
  { kind: 'create', by: 4, ...all, scopes: ['*'] },
  { kind: 'revoke', by: 0, target: 1 },
]

type Known = { id: string; secret: string }

const isLive = ({ revokedAt, expiresAt }: Token) =>
  revokedAt === null && (expiresAt === null || expiresAt.getTime() > Date.now())

/** Whether everything that one may do, and when, is what the other may too. */
function within(inner: Token, outer: Token): boolean {
  const held = outer.scopes as Scope[]
  const every = tokenScopes.filter((scope) => scope !== '*' && allows(inner.scopes as Scope[], scope))
  const scoped = every.every((scope) => allows(held, scope)) && (!inner.scopes.includes('*') || held.includes('*'))
  const narrowed =
    outer.projectIds.length === 0 ||
    (inner.projectIds.length > 0 && inner.projectIds.every((id) => outer.projectIds.includes(id)))
  const lives = outer.expiresAt === null || (inner.expiresAt !== null && inner.expiresAt <= outer.expiresAt)
  return scoped && narrowed && lives
}

test('no child ever has a right or a life that its parent has not, nor any token more than who got its secret', async () => {
  const seen = { created: 0, rotated: 0, revoked: 0, adopted: 0, refused: 0 }
  const property = async (steps: Step[]) => {
    const { account, token } = await createAccount(api.db, `family-${crypto.randomUUID()}`, ['*', 'operator'])
    for (const name of projects) await api.call('POST', '/projects', { token, body: { name, repo: 'a/b' } })
    const root = await api.db.token.findFirstOrThrow({ where: { accountId: account.id } })
    const family: Known[] = [{ id: root.id, secret: token }]
    // Who asked for a token, and so has its secret.
    const dnsClients = new Map<string, string>()
    const comesFrom = (id: string | undefined, source: string): boolean =>
      id !== undefined && (id === source || comesFrom(dnsClients.get(id), source))
    const rowsNow = async () =>
      new Map((await api.db.token.findMany({ where: { accountId: account.id } })).map((row) => [row.id, row]))
    let before = await rowsNow()
    for (const step of steps) {
      // That ended tokens are refused is tested elsewhere; too many of them from one address are shut out.
      const live = family.filter(({ id }) => isLive(before.get(id)!))
      if (live.length === 0) break
      const by = live[step.by % live.length]!
      const call = (method: string, path: string, body?: object) =>
        api.call(method, path, { token: by.secret, ...(body && { body }) })
      const caller = before.get(by.id)!
      if (step.kind === 'create') {
        const expiresAt = step.hours && new Date(Date.now() + step.hours * hourMs).toISOString()
        const body = { name: 't', scopes: step.scopes, projects: step.narrowing, expiresAt }
        const made = await call('POST', '/tokens', body)
        if (made.status === 201) {
          family.push({ id: made.body.id, secret: made.body.token })
          dnsClients.set(made.body.id, by.id)
        } else seen.refused++
        seen.created += made.status === 201 ? 1 : 0
      } else if (step.kind === 'rotate') {
        const target = family[step.target % family.length]!
        const { overlapSeconds, revokeChildren } = step
        const made = await call('POST', `/tokens/${target.id}/rotate`, { overlapSeconds, revokeChildren })
        if (made.status === 201) {
          family.push({ id: made.body.id, secret: made.body.token })
          dnsClients.set(made.body.id, by.id)
          seen.rotated++
          if (made.body.parentId === by.id && before.get(target.id)!.parentId !== by.id) seen.adopted++
          const old = before.get(target.id)!
          const row = (await rowsNow()).get(made.body.id)!
          expect([within(row, old), within(old, row)]).toEqual([true, true])
        } else seen.refused++
      } else {
        const target = family[step.target % family.length]!
        const { status } = await call('DELETE', `/tokens/${target.id}`)
        if (status === 204) {
          seen.revoked++
          expect(within({ ...before.get(target.id)!, expiresAt: caller.expiresAt }, caller)).toBe(true)
          const now = await rowsNow()
          for (const { id } of family) {
            const [past, row] = [before.get(id)!, now.get(id)!]
            if (isLive(past) && !isLive(row))
              expect(within({ ...past, expiresAt: caller.expiresAt }, caller)).toBe(true)
            if (comesFrom(id, target.id)) expect(isLive(row), 'nothing that came from it is left').toBe(false)
            // Whoever started the rotations that led from the one to the other has both.
            const mates = past.lineageId !== null && past.lineageId === (before.get(target.id)!.lineageId ?? target.id)
            if (mates) expect(isLive(row), 'its lineage ends with it').toBe(false)
          }
        } else seen.refused++
      }
      const after = await rowsNow()
      for (const row of after.values()) {
        if (!before.has(row.id)) expect(within(row, caller), 'who got the secret had it all').toBe(true)
        const past = before.get(row.id)
        // No token ever lives longer than it did, or comes back.
        if (past) expect(!isLive(past) && isLive(row)).toBe(false)
        if (past?.expiresAt) expect(row.expiresAt! <= past.expiresAt).toBe(true)
        if (!isLive(row) || row.parentId === null) continue
        const parent = after.get(row.parentId)!
        expect(isLive(parent), 'a live token has a live parent').toBe(true)
        expect(within(row, parent), 'a child is within its parent').toBe(true)
      }
      for (const { id, secret } of family) {
        const { findKnown, find } = api.deps.tokenDirectory
        const known = findKnown(secret) ?? (await find(secret, false))
        expect(known).toMatchObject({ id, revokedAt: after.get(id)!.revokedAt, expiresAt: after.get(id)!.expiresAt })
      }
      before = after
    }
  }
  await fc.assert(fc.asyncProperty(commands, property), {
    numRuns: valuesToTry(25),
    endOnFailure: true,
    examples: [[everything]],
  })
  // The property would hold for nothing at all, too.
  for (const count of Object.values(seen)) expect(count, JSON.stringify(seen)).toBeGreaterThan(0)
}, 120_000)
