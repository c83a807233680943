// Every operation, hunted with mutated bodies, queries, paths and headers: it answers or refuses, and never breaks.
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { methodsOf, type Operation, takesParameters } from '../access/operations.ts'
import { hostileHeader, hostileSegment } from './addresses.ts'
import { createTargets, expectKnownFields, hunt, runs, startHarness, timeout } from './harness.ts'
import { mutated, mutation, queryOf, toQuery } from './mutations.ts'
import { toJson } from './values.ts'

const harness = await startHarness()
const { api, operations, attack } = harness
const targets = createTargets(harness)
afterAll(() => api.stop())

function wireOf(operation: Operation, body: unknown): { payload?: string; headers: Record<string, string> } {
  if (!operation.body) return { headers: {} }
  return { payload: typeof body === 'string' ? body : toJson(body), headers: { 'content-type': operation.body.type } }
}

describe.each(operations)('$name', (operation) => {
  const anyMethod = fc.constantFrom(...methodsOf(operation))

  const takesOrRefusesBodies = async () => {
    const plan = fc.array(mutation, { minLength: 1, maxLength: 3 })
    await hunt(plan, runs * 2, async (mutations) => {
      const { path, owner, body: valid } = await targets.of(operation)
      const body = mutated(operation, valid, mutations)
      const answer = await attack({ ...wireOf(operation, body), method: operation.method, path, token: owner.token })
      expectKnownFields(operation, answer, body, [])
      targets.after(operation, answer, operation.method)
    })
  }

  const takesOrRefusesQueries = async () => {
    await hunt(fc.tuple(anyMethod, queryOf(operation)), runs, async ([method, query]) => {
      const { path, owner, body } = await targets.of(operation)
      const request = { ...wireOf(operation, body), method, path: `${path}${toQuery(query)}`, token: owner.token }
      const answer = await attack(request)
      if (method !== 'HEAD') expectKnownFields(operation, answer, body, query)
      targets.after(operation, answer, method)
    })
  }

  const findsNothing = async () => {
    const target = await targets.of(operation)
    const plan = fc.tuple(anyMethod, fc.nat(target.values.length - 1), hostileSegment)
    await hunt(plan, runs, async ([method, place, segment]) => {
      let index = -1
      const path = operation.template.replace(/\{[^}]+\}/g, () => {
        index++
        return index === place ? segment : encodeURIComponent(target.values[index]!)
      })
      const answer = await attack({ ...wireOf(operation, target.body), method, path, token: target.owner.token })
      // Variables and records of any name can be set, and some words are paths of their own; nothing else is there.
      if (answer.status < 300) expect(path).toMatch(/\/env\/|\/rrsets\/|\/(current|states|batch)\b/)
    })
  }

  const takesOrRefusesHeaders = async () => {
    const plan = fc.tuple(anyMethod, fc.array(hostileHeader, { minLength: 1, maxLength: 3 }))
    await hunt(plan, Math.ceil(runs / 2), async ([method, pairs]) => {
      const { path, owner, body } = await targets.of(operation)
      const wire = wireOf(operation, body)
      const headers = { ...Object.fromEntries(pairs), ...wire.headers }
      targets.after(operation, await attack({ ...wire, headers, method, path, token: owner.token }), method)
    })
  }

  if (operation.body) test('takes or refuses a mutated body, and names what is wrong', takesOrRefusesBodies, timeout)
  test('takes or refuses any query, and names what is wrong', takesOrRefusesQueries, timeout)
  if (takesParameters(operation)) test('finds nothing behind a hostile path', findsNothing, timeout)
  test('takes or refuses any header', takesOrRefusesHeaders, timeout)
})
