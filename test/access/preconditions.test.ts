// If-Match on everything that changes: an old version is refused, the current one passes, and a 201 names its version.
import { afterAll, describe, expect, test } from 'vitest'
import { sharedApi } from '../helpers/api.ts'
import { operationsOf } from './operations.ts'
import { createSend } from './send.ts'
import { createWorld, wireOf } from './world.ts'

const api = await sharedApi()
afterAll(() => api.stop())
const send = createSend(api)
const world = await createWorld(api)
const operations = operationsOf(api.app)
const owner = await world.newOwner()

// Content has no other version: its hash is its name.
const changes = operations.filter(({ id, method }) => ['PUT', 'PATCH', 'DELETE'].includes(method) && id !== 'putUpload')

/** Where the version of what an operation changes is read, if not at its own path. */
const readAt: Record<string, (path: string) => string> = {
  putCommitStatusTarget: (path) => path.replace(/\/status$/, ''),
  deletePin: (path) => path.replace(/\/pin$/, ''),
  deleteCommitStatusTarget: (path) => path.replace(/\/status$/, ''),
}

test('there are operations to look at', () => expect(changes.length).toBeGreaterThan(15))

describe.each(changes)('$name', (operation) => {
  test('refuses another version and changes nothing, then takes the current one', async () => {
    const { path, body } = await world.targetOf(operation, owner)
    const at = readAt[operation.id]?.(path) ?? path
    const read = () => send({ method: 'GET', path: at, token: owner.token })
    const before = await read()
    expect(before.headers.etag, before.text).toMatch(/^"[^"]+"$/)
    const wire = wireOf(operation, body)
    const change = (etag: string) =>
      send({
        ...wire,
        method: operation.method,
        path,
        token: owner.token,
        headers: { ...wire.headers, 'if-match': etag },
      })
    for (const other of ['"nope"', `W/${before.headers.etag}`, '"a", "b"', '']) {
      const refused = await change(other)
      expect([refused.status, refused.body.code], other).toEqual([412, 'precondition_failed'])
    }
    expect((await read()).headers.etag).toBe(before.headers.etag)
    const passed = await change(`"nope", ${before.headers.etag}`)
    expect(passed.status, passed.text).toBeLessThan(300)
  })
})

// Its place in the queue is part of a deployment, and is not known yet when it is made.
const changesAtOnce = new Set(['createDeployment', 'createDeploymentFromArchive', 'redeployDeployment'])
// Messages are read as a list.
const withoutVersion = new Set(['replyToTicket', 'replyToTicketAsSupport'])

const makers = operations.filter(({ id, method, created }) => method === 'POST' && created && !withoutVersion.has(id))

describe.each(makers)('$name', (operation) => {
  test('answers 201 with the ETag of what is read at Location, also when it is sent again', async () => {
    const { path, body } = await world.targetOf(operation, owner)
    const wire = wireOf(operation, body)
    const headers = { ...wire.headers, 'idempotency-key': crypto.randomUUID() }
    const post = () => send({ ...wire, headers, method: 'POST', path, token: owner.token })
    const made = await post()
    expect(made.status, made.text).toBe(201)
    expect(made.headers.etag).toMatch(/^"[\w-]{27}"$/)
    expect((await post()).headers).toMatchObject({ etag: made.headers.etag, 'idempotency-replayed': 'true' })
    const read = await send({ method: 'GET', path: made.headers.location!.slice('/api'.length), token: owner.token })
    expect(read.status).toBe(200)
    if (!changesAtOnce.has(operation.id)) expect(read.headers.etag).toBe(made.headers.etag)
  })
})

const reads = operations.filter(({ method }) => method === 'GET')
// Lists, two of them without pages, and two whose answer is different each time.
const withoutCopy = reads.filter(({ single, query }) => !single && !query.some(({ name }) => name === 'cursor'))

test('every other resource can be read with If-None-Match', () => {
  expect(withoutCopy.map(({ id }) => id).sort()).toEqual(['getUpload', 'getZoneStatus', 'listCrons', 'listVariables'])
})

describe.each(reads.filter(({ single }) => single))('$name', (operation) => {
  test('answers 304 to who has it, and the whole to who has another version', async () => {
    const { path } = await world.targetOf(operation, owner)
    const read = (headers: Record<string, string> = {}) => send({ method: 'GET', path, token: owner.token, headers })
    const { status, headers, text } = await read()
    expect(status, text).toBe(200)
    const again = await read({ 'if-none-match': headers.etag! })
    expect([again.status, again.text, again.headers.etag]).toEqual([304, '', headers.etag])
    expect((await read({ 'if-none-match': `W/${headers.etag}` })).status).toBe(304)
    expect((await read({ 'if-none-match': '"other"' })).status).toBe(200)
  })
})

test('a variable that is not there has no version, so that If-Match never makes one', async () => {
  const path = `/projects/${owner.project}/env/NEW`
  const put = (headers: Record<string, string>) =>
    api.call('PUT', path, { token: owner.token, body: { value: 'x' }, headers })
  for (const etag of ['*', '"any"']) expect((await put({ 'if-match': etag })).status).toBe(412)
  expect((await put({})).status).toBe(200)
  expect((await put({ 'if-match': '*' })).status).toBe(200)
})

test('of two who set the same version of a variable at once, one is refused, also where nobody can read it', async () => {
  const path = `/projects/${owner.project}/env/RACE`
  const put = (value: string, headers: Record<string, string> = {}) =>
    api.call('PUT', path, { token: owner.token, body: { value }, headers })
  await put('first')
  const { headers, body } = await api.call('GET', path, { token: owner.token })
  expect(body).toMatchObject({ key: 'RACE', values: [{ target: 'all', readable: false, value: null }] })
  const answers = await Promise.all(['second', 'third'].map((value) => put(value, { 'if-match': headers.etag! })))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 412])
})
