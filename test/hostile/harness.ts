// The app under attack: every answer is held against the guarantees, and a refused request must leave no trace.
import fc from 'fast-check'
import { expect } from 'vitest'
import { type Operation, operationsOf } from '../access/operations.ts'
import { createSend, expectSound, type Sent } from '../access/send.ts'
import { createSnapshot } from '../access/snapshot.ts'
import { createWorld, type Target } from '../access/world.ts'
import { type Answer, startApi, type TestApi } from '../helpers/api.ts'
import { seed } from '../helpers/seed.ts'

/** How many requests each operation gets of a kind. */
export const runs = 25
export const timeout = 30_000 + runs * 500

export function hunt<T>(plan: fc.Arbitrary<T>, numRuns: number, attack: (plan: T) => Promise<void>): Promise<void> {
  return fc.assert(fc.asyncProperty(plan, attack), { seed, numRuns, interruptAfterTimeLimit: timeout - 10_000 })
}

export type Harness = {
  api: TestApi
  operations: Operation[]
  /** Fresh resources of a fresh account. */
  fresh(operation: Operation): Promise<Target>
  /** Resources for every operation, all of one account. */
  freshForAll(operations: Operation[]): Promise<Map<Operation, Target>>
  /** Sends a request; refused or only reading, it must have stored nothing. */
  attack(request: Sent): Promise<Answer>
  /** Sends a request whose traces are looked for later, by `expectUntouched`. */
  refused(request: Sent): Promise<Answer>
  /** Nothing was stored since it was called last, apart from what `fresh` made. */
  expectUntouched(): Promise<void>
}

export async function startHarness(environment: Record<string, string> = {}): Promise<Harness> {
  const api = await startApi(environment)
  const operations = operationsOf(api.app)
  const send = createSend(api)
  const world = await createWorld(api)
  const snapshot = await createSnapshot(api)
  let clean: Record<string, string> | null = null

  async function expectUntouched(what: string): Promise<void> {
    const now = await snapshot()
    const before = clean ?? now
    clean = now
    expect(now, `a trace of ${what}`).toEqual(before)
  }

  return {
    api,
    operations,
    async freshForAll(operations) {
      clean = null
      const owner = await world.newOwner()
      const targets = new Map<Operation, Target>()
      for (const operation of operations) targets.set(operation, await world.targetOf(operation, owner))
      return targets
    },
    async refused(request) {
      clean ??= await snapshot()
      const answer = await send(request)
      expectSound(answer, request.method)
      expect(answer.status < 400 && request.method !== 'GET', `${request.method} ${request.path} was taken`).toBe(false)
      return answer
    },
    expectUntouched: () => expectUntouched('the requests of this test'),
    async fresh(operation) {
      clean = null
      return world.targetOf(operation)
    },
    async attack(request) {
      clean ??= await snapshot()
      const answer = await send(request)
      expectSound(answer, request.method)
      if (answer.status >= 400 || request.method === 'GET' || request.method === 'HEAD') {
        await expectUntouched(`${request.method} ${request.path}: ${answer.text}`)
      } else clean = null
      return answer
    },
  }
}

/** One target per operation, kept until it is used up: deleted, closed, in the way of the next one, or simply full. */
export function createTargets(harness: Harness) {
  const targets = new Map<Operation, Target>()
  const successes = new Map<Operation, number>()
  return {
    async of(operation: Operation): Promise<Target> {
      const target = targets.get(operation) ?? (await harness.fresh(operation))
      targets.set(operation, target)
      return target
    },
    after(operation: Operation, { status }: Answer, method: string): void {
      const changed = status < 300 && method !== 'GET' && method !== 'HEAD'
      const taken = (successes.get(operation) ?? 0) + (changed ? 1 : 0)
      successes.set(operation, taken)
      const worn = status === 404 || status === 409 || (changed && (method === 'DELETE' || taken % 20 === 0))
      if (worn) targets.delete(operation)
    },
  }
}

/** A refused field is one that was sent or one that the operation knows: nothing else can be corrected. */
export function expectKnownFields(
  operation: Operation,
  answer: Answer,
  body: unknown,
  query: [string, string][],
): void {
  if (answer.status !== 422 || typeof body === 'string') return
  const names = {
    body: [...Object.keys(operation.body?.schema.properties ?? {}), ...Object.keys(Object(body) as object)],
    query: [...operation.query.map(({ name }) => name), ...query.map(([name]) => name.toWellFormed())],
    path: [...operation.template.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]!),
    header: [] as string[],
  }
  for (const { in: part, pointer } of answer.body.errors as { in: keyof typeof names; pointer: string }[]) {
    const [, first] = pointer.split('/')
    if (first === undefined) continue
    expect(names[part]).toContain(first.replaceAll('~1', '/').replaceAll('~0', '~'))
  }
}
