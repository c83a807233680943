import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { insertToken } from '../../../src/services/tokens/tokens.ts'
import { type Answer, type CallOptions, sharedApi, type TestApi } from '../../helpers/api.ts'
import { waitsForLock } from '../../helpers/database.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
let operator: { token: string; accountId: string }
beforeAll(async () => {
  api = await sharedApi()
  const made = await createAccount(api.db, 'the desk', ['operator'])
  operator = { token: made.token, accountId: made.account.id }
})
afterAll(() => api.stop())

const desk = (method: string, path: string, options: CallOptions = {}) =>
  api.call(method, `/operator${path}`, { token: operator.token, ...options })

describe('accounts', () => {
  test('are made with a test key that has full access, and is shown once', async () => {
    const { status, headers, body } = await desk('POST', '/accounts', { body: { name: 'Acme & Söhne 🚢' } })
    expect(status).toBe(201)
    expect(headers.location).toBe(`/api/operator/accounts/${body.id}`)
    expect(body).toEqual({
      id: expect.stringMatching(/^acc_/),
      name: 'Acme & Söhne 🚢',
      suspended: false,
      suspendedAt: null,
      createdAt: expect.any(String),
      suspension: null,
      secret: expect.stringMatching(/^brt_[0-9A-Za-z]{36}$/),
      token: body.secret,
    })
    expect(headers.deprecation).toBe('@1794787200')
    expect((await api.call('GET', '/projects', { token: body.token })).status).toBe(200)
    expect((await desk('GET', '/accounts', { token: body.token })).status).toBe(403)
    const { secret: _secret, token, ...shown } = body
    const read = await desk('GET', `/accounts/${body.id}`)
    expect(read.body).toEqual(shown)
    expect((await desk('GET', '/accounts')).text).not.toContain('brt_')
    const events = await api.db.event.findMany({ where: { accountId: body.id } })
    expect(events.map((event) => event.type)).toContain('account.created')
    expect(JSON.stringify(events.map((event) => event.data))).not.toContain(token)
  })

  test('are made once for a repeated Idempotency-Key, which gives the same key again', async () => {
    const options = { body: { name: 'once' }, headers: { 'idempotency-key': 'account-once' } }
    const first = await desk('POST', '/accounts', options)
    const second = await desk('POST', '/accounts', options)
    expect([first.status, second.status]).toEqual([201, 201])
    expect(first.headers['idempotency-replayed']).toBeUndefined()
    expect(second.headers['idempotency-replayed']).toBe('true')
    expect(second.body).toEqual(first.body)
    expect(second.headers.location).toBe(first.headers.location)
    expect((await api.call('GET', '/projects', { token: second.body.token })).status).toBe(200)
    expect(await api.db.account.count({ where: { name: 'once' } })).toBe(1)
    const stored = await api.db.idempotencyKey.findFirstOrThrow({ where: { key: 'account-once' } })
    expect(Buffer.from(stored.sealed).toString('latin1')).not.toContain('brt_')
  })

  test.each([undefined, 'account-twice'])('have unique names (Idempotency-Key: %s)', async (key) => {
    const name = `unique ${key}`
    await desk('POST', '/accounts', { body: { name } })
    const options: CallOptions = { body: { name }, ...(key && { headers: { 'idempotency-key': key } }) }
    const again = await desk('POST', '/accounts', options)
    expect([again.status, again.body.code]).toEqual([409, 'account_exists'])
    const replayed = await desk('POST', '/accounts', options)
    expect([replayed.status, replayed.body.code]).toEqual([409, 'account_exists'])
    expect(replayed.headers['idempotency-replayed']).toBe(key && 'true')
    expect(await api.db.account.count({ where: { name } })).toBe(1)
  })

  test('of the same name made at the same time are one', async () => {
    const make = () => desk('POST', '/accounts', { body: { name: 'race' } })
    const statuses = (await Promise.all([make(), make(), make(), make()])).map((answer) => answer.status)
    expect(statuses.sort()).toEqual([201, 409, 409, 409])
  })

  test.each([
    ['no name', {}, '#/name required'],
    ['an empty name', { name: '' }, '#/name too_short'],
    ['a blank name', { name: '   ' }, '#/name bad_format'],
    ['a blank at the end', { name: 'acme ' }, '#/name bad_format'],
    ['a line break', { name: 'a\nb' }, '#/name bad_format'],
    ['an invisible character', { name: 'ac\u200bme' }, '#/name bad_format'],
    ['a turned direction', { name: 'ac\u202eme' }, '#/name bad_format'],
    ['a long name', { name: 'n'.repeat(101) }, '#/name too_long'],
    ['scopes', { name: 'scoped', scopes: ['operator'] }, '#/scopes unknown_field'],
  ])('are not made with %s', async (_name, body, expected) => {
    const answer = await desk('POST', '/accounts', { body })
    expect(answer.status).toBe(422)
    const errors = answer.body.errors as { pointer: string; code: string }[]
    expect(errors.map((error) => `${error.pointer} ${error.code}`)).toContain(expected)
  })

  test('are listed newest first, page by page', async () => {
    const made = await desk('POST', '/accounts', { body: { name: 'newest' } })
    const first = await desk('GET', '/accounts?limit=1')
    expect(first.body.accounts).toMatchObject([{ id: made.body.id, name: 'newest' }])
    const rest = await desk('GET', `/accounts?limit=100&cursor=${first.body.nextCursor}`)
    const ids = rest.body.accounts.map((account: { id: string }) => account.id)
    expect(ids).not.toContain(made.body.id)
    expect(ids).toEqual([...ids].sort().reverse())
    expect(ids.length + 1).toBe(await api.db.account.count())
  })
})

describe('suspension', () => {
  const projects = (token: string): Promise<Answer> => api.call('GET', '/projects', { token })

  test('refuses every token of the account at once, and lets them in again', async () => {
    const { accountId, token } = await api.newAccount('to be suspended')
    const second = await insertToken(api.db, { accountId, name: 's', scopes: ['*'], projectIds: [], expiresAt: null })
    for (const secret of [token, second.secret]) expect((await projects(secret)).status).toBe(200)
    const suspended = await desk('PATCH', `/accounts/${accountId}`, { body: { suspended: true } })
    expect(suspended.body).toMatchObject({ id: accountId, suspended: true, suspendedAt: expect.any(String) })
    for (const secret of [token, second.secret]) {
      const refused = await projects(secret)
      expect([refused.status, refused.body.code]).toEqual([403, 'account_suspended'])
    }
    expect((await projects(api.token)).status).toBe(200)
    const resumed = await desk('PATCH', `/accounts/${accountId}`, { body: { suspended: false } })
    expect(resumed.body).toMatchObject({ suspended: false, suspendedAt: null })
    for (const secret of [token, second.secret]) expect((await projects(secret)).status).toBe(200)
  })

  test('writes one event for each change, and none when nothing changes', async () => {
    const { accountId } = await api.newAccount('logged')
    const set = (suspended: boolean) => desk('PATCH', `/accounts/${accountId}`, { body: { suspended } })
    const first = await set(true)
    expect((await set(true)).body).toEqual(first.body)
    await set(false)
    await set(false)
    const events = await api.db.event.findMany({ where: { accountId }, orderBy: { id: 'asc' } })
    const changes = events.filter((event) => /suspended|resumed/.test(event.type))
    expect(changes.map((event) => event.type)).toEqual(['account.suspended', 'account.resumed'])
    expect(changes[0]).toMatchObject({ subject: accountId, data: { id: accountId, name: 'logged' } })
    expect(changes[0]!.actor).toMatch(/^tok_/)
  })

  test('needs the current version when If-Match is sent', async () => {
    const { accountId } = await api.newAccount()
    const etag = (await desk('GET', `/accounts/${accountId}`)).headers.etag!
    const change = { body: { suspended: true }, headers: { 'if-match': etag } }
    expect((await desk('PATCH', `/accounts/${accountId}`, change)).status).toBe(200)
    expect((await desk('PATCH', `/accounts/${accountId}`, change)).status).toBe(412)
  })

  test('is not for the operator’s own account, and takes a boolean', async () => {
    const own = await desk('PATCH', `/accounts/${operator.accountId}`, { body: { suspended: true } })
    expect(own.body.errors).toMatchObject([{ pointer: '#/suspended', code: 'own_account' }])
    for (const body of [{}, { suspended: 'true' }, { suspended: null }]) {
      const answer = await desk('PATCH', `/accounts/${api.accountId}`, { body })
      expect(answer.body.errors).toMatchObject([{ pointer: '#/suspended' }])
    }
    const renamed = await desk('PATCH', `/accounts/${api.accountId}`, { body: { suspended: false, name: 'x' } })
    expect(renamed.body.errors).toMatchObject([{ pointer: '#/name', code: 'unknown_field' }])
  })

  test('says why and what becomes of the DNS, to the operator and in the event for the owner', async () => {
    const { accountId, token } = await api.newAccount('explained')
    const set = (body: object) => desk('PATCH', `/accounts/${accountId}`, { body })
    const first = await set({ suspended: true, reason: 'Unpaid' })
    expect(first.body.suspension).toEqual({ dns: 'serve', reason: 'Unpaid' })
    const second = await set({ suspended: true, dns: 'refuse' })
    expect(second.body).toEqual({ ...first.body, suspension: { dns: 'refuse', reason: 'Unpaid' } })
    expect((await set({ suspended: true, dns: 'refuse' })).body).toEqual(second.body)
    expect((await set({ suspended: false })).body).toMatchObject({ suspended: false, suspension: null })
    const again = await set({ suspended: true })
    expect(again.body.suspension).toEqual({ dns: 'serve', reason: null })
    await set({ suspended: false })
    const { body } = await api.call('GET', '/events?type=account.suspended&order=asc', { token })
    const suspensions = body.events.map((event: { data: { suspension: object } }) => event.data.suspension)
    expect(suspensions).toEqual([first, second, again].map((answer) => answer.body.suspension))
  })

  test.each([
    [{ suspended: true, dns: 'drop' }, '#/dns'],
    [{ suspended: true, reason: '' }, '#/reason'],
    [{ suspended: true, reason: '  ' }, '#/reason'],
    [{ suspended: true, reason: 'r'.repeat(501) }, '#/reason'],
    [{ suspended: false, dns: 'refuse' }, '#/dns'],
    [{ suspended: false, reason: 'sorry' }, '#/reason'],
  ])('is not made with %j', async (body, pointer) => {
    const { accountId } = await api.newAccount()
    const answer = await desk('PATCH', `/accounts/${accountId}`, { body })
    expect([answer.status, answer.body.errors[0]]).toMatchObject([422, { pointer }])
    expect((await desk('GET', `/accounts/${accountId}`)).body.suspended).toBe(false)
  })

  test('waits for the deletion of a project that is under way, and neither fails', async () => {
    const { accountId, token } = await api.newAccount('deleting')
    await api.newProject('going', { token })
    const made = async () => (await api.call('POST', '/deployments', { token, body: { project: 'going' } })).body.id
    const [first, second] = [await made(), await made()]
    const deletion = new pg.Client({ connectionString: api.databaseUrl })
    await deletion.connect()
    // In the order in which a deletion may come to its deployments.
    await deletion.query('BEGIN')
    await deletion.query('SELECT id FROM project WHERE account_id = $1 FOR UPDATE', [accountId])
    await deletion.query('DELETE FROM deployment WHERE id = $1', [second])
    const suspended = desk('PATCH', `/accounts/${accountId}`, { body: { suspended: true } })
    await until(() => waitsForLock(api.db))
    await deletion.query('DELETE FROM deployment WHERE id = $1', [first])
    await deletion.query('DELETE FROM project WHERE account_id = $1', [accountId])
    await deletion.query('COMMIT')
    await deletion.end()
    expect((await suspended).body).toMatchObject({ suspended: true })
  })
})
