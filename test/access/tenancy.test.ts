// Whose things are whose: another account and a token of another project see nothing, and cannot tell that it is there.
import { afterAll, describe, expect, test } from 'vitest'
import { tokenScopes } from '../../src/schemas/tokens.ts'
import { insertToken } from '../../src/services/tokens/tokens.ts'
import { type Answer, sharedApi } from '../helpers/api.ts'
import { share } from '../helpers/seed.ts'
import { methodsOf, type Operation, operationsOf, takesParameters } from './operations.ts'
import { createSend, expectSound } from './send.ts'
import { createSnapshot } from './snapshot.ts'
import { createWorld, pathOf, type Target, wireOf } from './world.ts'

const api = await sharedApi()
afterAll(() => api.stop())
const send = createSend(api)
const world = await createWorld(api)
const snapshot = await createSnapshot(api)
const operations = operationsOf(api.app)
// The operator's desk sees all accounts; that it stays closed to everybody else is a matter of scopes.
// Content is sent under its own hash into the caller's account, whoever else has it; test/api/routes/uploads.test.ts looks at it.
const byContent = ['putUpload', 'createUploads']
const ofAccounts = operations.filter(({ id, scope }) => scope !== 'operator' && !byContent.includes(id))
const addressed = ofAccounts.filter(takesParameters)
const collections = ofAccounts.filter((operation) => !takesParameters(operation))

const owner = await world.newOwner()
const targets = new Map<Operation, Target>()
for (const operation of operations) targets.set(operation, await world.targetOf(operation, owner))

const stranger = await world.newOwner()
const { body: elsewhere } = await api.call('POST', '/projects', {
  token: owner.token,
  body: { name: 'elsewhere', repo: 'test/shared' },
})
const { secret: narrowed } = await insertToken(api.db, {
  accountId: owner.accountId,
  name: 'narrowed',
  scopes: [...tokenScopes],
  projectIds: [elsewhere.id],
  expiresAt: null,
})

/** The same form as a real value, but of nothing that exists. */
function absent(value: string): string {
  if (/^[a-z]{3}_/.test(value)) return `${value.slice(0, 12)}${'z'.repeat(value.length - 12)}`
  if (/^[0-9a-f]{64}$/.test(value)) return 'f'.repeat(64)
  return value.endsWith('.example.test') ? 'absent.example.test' : `absent${value.length}`
}

/** What names something of the owner. The type of a set of records and the number of a job are in names of others too. */
function ownersValues(): string[] {
  const named = [...targets.values()].flatMap(({ values }) => values).filter((value) => !/^(TXT|\d+)$/.test(value))
  return [...new Set([owner.project, ...named])]
}

/** The answer as everyone would get it: without what names this one request, and with the caller's own words taken out. */
function shapeOf({ status, headers, body }: Answer, values: string[]) {
  let text = JSON.stringify({ ...body, requestId: '' })
  for (const value of values) text = text.replaceAll(value, '<sent>')
  return { status, text, headers: Object.keys(headers).sort() }
}

async function ask(operation: Operation, token: string, values: string[], headers: Record<string, string> = {}) {
  const wire = wireOf(operation, targets.get(operation)!.body)
  const path = pathOf(operation, values)
  const answers: Answer[] = []
  for (const method of methodsOf(operation)) {
    const answer = await send({ ...wire, method, path, token, headers: { ...wire.headers, ...headers } })
    expectSound(answer, method)
    answers.push(answer)
  }
  return answers
}

// Below a resource of one's own, the rest of a path could still be another account's.
const mixed = new Map<Operation, string[]>()
for (const operation of addressed) {
  const { values } = targets.get(operation)!
  // Variables and sets of records are addressed by names that anyone may use in a project or zone of their own.
  if (values.length < 2 || /\/(env|rrsets)\//.test(operation.template)) continue
  mixed.set(operation, [(await world.targetOf(operation, stranger)).values[0]!, ...values.slice(1)])
}

const before = await snapshot()

describe.each(addressed)('$name', (operation) => {
  const { values } = targets.get(operation)!
  const nowhere = values.map(absent)

  test.each([
    ['another account', stranger.token],
    ['a token of another project', narrowed],
  ])('is 404 to %s, exactly as if there were nothing', async (_who, token) => {
    const real = await ask(operation, token, values)
    const none = await ask(operation, token, nowhere)
    for (const [index, answer] of real.entries()) {
      expect(answer.status, answer.text).toBe(404)
      expect(shapeOf(answer, values)).toEqual(shapeOf(none[index]!, nowhere))
    }
    expect(real[0]!.body.code).toBe('not_found')
  })

  test('tells another account nothing by its conditions', async () => {
    for (const headers of [{ 'if-match': '"x"' }, { 'if-none-match': '*' }, { 'if-match': '*' }]) {
      for (const { status } of await ask(operation, stranger.token, values, headers as never)) expect(status).toBe(404)
    }
  })

  if (mixed.has(operation)) {
    test('is 404 below a resource of one’s own, when the rest of the path is another account’s', async () => {
      const answers = await ask(operation, stranger.token, mixed.get(operation)!)
      for (const { status, text } of answers) expect(status, text).toBe(404)
    })
  }
})

describe.each(collections)('$name', (operation) => {
  const { body } = targets.get(operation)!
  const wire = wireOf(operation, body)

  if (operation.accountWide) {
    test('is 403 to a token of some projects, because it concerns the whole account', async () => {
      const answer = await send({ ...wire, method: operation.method, path: pathOf(operation, []), token: narrowed })
      expect(answer).toMatchObject({ status: 403, body: { code: 'token_limited_to_projects' } })
    })
  } else if (operation.method === 'GET') {
    test('shows another account and a token of another project nothing of the project', async () => {
      const secrets = ownersValues()
      for (const token of [stranger.token, narrowed]) {
        const { status, text } = await send({ method: 'GET', path: pathOf(operation, []), token })
        expect(status).toBe(200)
        for (const value of secrets) expect(text).not.toContain(`"${value}"`)
      }
    })
  } else {
    test('never reaches into a project that the token cannot see', async () => {
      const shared = JSON.stringify(body).includes(`"${owner.project}"`)
      for (const token of shared ? [stranger.token, narrowed] : [narrowed]) {
        const answer = await send({ ...wire, method: operation.method, path: pathOf(operation, []), token })
        expectSound(answer, operation.method)
        expect([403, 404, 422], answer.text).toContain(answer.status)
        if (!shared) continue
        const payload = wire.payload!.replaceAll(`"${owner.project}"`, '"absent"')
        const none = await send({ ...wire, payload, method: operation.method, path: pathOf(operation, []), token })
        expect(shapeOf(answer, [owner.project])).toEqual(shapeOf(none, ['absent']))
      }
    })
  }
})

test('filters by what belongs to another account find nothing, exactly as if there were nothing', async () => {
  const everyValue = ownersValues()
  let filters = 0
  for (const operation of collections.filter(({ method }) => method === 'GET')) {
    for (const { name, schema: given } of operation.query) {
      const schema = given.items ?? given
      if (schema.type !== 'string' || schema.enum || name === 'cursor') continue
      const fitting = everyValue.filter((value) => new RegExp(schema.pattern ?? '').test(value))
      for (const value of share(fitting, filters++)) {
        const path = `${operation.template}?${name}=${encodeURIComponent(value)}`
        const { status, body } = await send({ method: 'GET', path, token: stranger.token })
        expect(status).toBe(200)
        const lists = Object.entries(body).flatMap(([key, items]) =>
          Array.isArray(items) && key !== 'searched' ? [items] : [],
        )
        for (const items of lists) expect(items, path).toEqual([])
      }
    }
  }
})

test('a ticket cannot be tied to what another account has', async () => {
  const { values } = targets.get(operations.find(({ id }) => id === 'getDeployment')!)!
  const open = (related: string) =>
    send({
      method: 'POST',
      path: '/tickets',
      token: stranger.token,
      headers: { 'content-type': 'application/json' },
      payload: JSON.stringify({ subject: 's', message: 'm', related }),
    })
  const answer = await open(values[0]!)
  expect(answer).toMatchObject({ status: 422, body: { errors: [{ pointer: '#/related' }] } })
  expect(shapeOf(answer, values)).toEqual(shapeOf(await open(absent(values[0]!)), [absent(values[0]!)]))
})

test('nothing was changed, made or deleted by all this, and the owner still finds everything', async () => {
  expect(await snapshot()).toEqual(before)
  for (const [operation, { path }] of targets) {
    if (operation.method !== 'GET') continue
    const { status, text } = await send({ method: 'GET', path, token: owner.token })
    expect(status, `${path} ${text}`).toBe(200)
  }
})

test('a token narrowed to projects makes only tokens that are narrowed as much', async () => {
  const make = (body: object) => api.call('POST', '/tokens', { token: narrowed, body: { name: 'x', ...body } })
  expect((await make({})).body.projects).toEqual(['elsewhere'])
  expect((await make({ projects: null })).body.projects).toEqual(['elsewhere'])
  expect((await make({ projects: [owner.project] })).status).toBe(422)
  expect((await make({ projects: ['elsewhere', owner.project] })).status).toBe(422)
})
