// /auth/device: a program is signed in by a person at the console, once, and by nobody else.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deleteExpiredSignIns } from '../../../src/services/people/sweep.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { newPerson, openBrowser } from '../../helpers/people.ts'

let api: TestApi

beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

// A program is no browser: it says nothing of where it comes from.
const program = () => openBrowser(api)
const ask = (path: string, body: object) => program().ask('POST', path, body, {})
const begin = async (client?: string) => (await ask('/device', client ? { client } : {})).body
const poll = (device_code: string) => ask('/device/token', { device_code })

/** As if the program had waited. */
const wait = () => api.db.deviceLogin.updateMany({ data: { polledAt: null } })

describe('a program', () => {
  test('gets a token of the person who approves its code, and gets it once', async () => {
    const begun = await begin('berth on laptop')
    expect(begun).toMatchObject({ expires_in: 600, interval: 5 })
    expect(begun.user_code).toMatch(/^[BCDFGHJKMNPQRSTVWXZ]{4}-[BCDFGHJKMNPQRSTVWXZ]{4}$/)
    expect(new URL(begun.verification_uri_complete).pathname).toBe('/device')
    expect(await poll(begun.device_code)).toMatchObject({ status: 400, body: { code: 'authorization_pending' } })

    const { browser, user } = await newPerson(api, { role: 'developer' })
    // However it is typed.
    const userCode = begun.user_code.replace('-', ' ').toLowerCase()
    const look = await browser.ask('POST', '/device/look', { userCode })
    expect(look).toMatchObject({
      status: 200,
      body: { client: 'berth on laptop', address: expect.stringMatching(/^127\./) },
    })
    expect((await browser.ask('POST', '/device/answer', { userCode, approve: true })).status).toBe(204)

    const taken = await poll(begun.device_code)
    expect(taken).toMatchObject({ status: 200, body: { token_type: 'Bearer', account: { id: api.accountId } } })
    const token = taken.body.access_token
    const current = await api.call('GET', '/tokens/current', { token })
    expect(current.body).toMatchObject({ name: 'berth on laptop', createdBy: user.id })
    expect(current.body.scopes).toContain('deployments:write')
    expect(current.body.scopes).not.toContain('*')
    expect(taken.headers['cache-control']).toBe('no-store')

    expect(await poll(begun.device_code)).toMatchObject({ status: 400, body: { code: 'expired_token' } })
    expect((await browser.ask('POST', '/device/look', { userCode })).status).toBe(422)
    const events = await api.call('GET', '/events?type=token.created&limit=1')
    expect(events.body.events[0]).toMatchObject({ actor: user.id, subject: current.body.id })
    expect(JSON.stringify(events.body)).not.toContain(token)
  })

  test('gets no more than was approved, which is no more than the person may', async () => {
    const { browser } = await newPerson(api, { role: 'viewer' })
    const { device_code, user_code: userCode } = await begin()
    const wide = await browser.ask('POST', '/device/answer', { userCode, approve: true, scopes: ['dns:write'] })
    expect(wide).toMatchObject({ status: 422, body: { errors: [{ pointer: '#/scopes/0' }] } })
    const scopes = ['dns:read']
    expect((await browser.ask('POST', '/device/answer', { userCode, approve: true, scopes })).status).toBe(204)
    const { body } = await poll(device_code)
    expect(body.scope).toBe('dns:read')
    expect((await api.call('GET', '/projects', { token: body.access_token })).status).toBe(403)
  })

  test('ends its own token, whatever it may do, and learns nothing of others', async () => {
    const { body } = await api.call('POST', '/tokens', { body: { name: 'narrow', scopes: ['dns:read'] } })
    const { secret: token } = body
    expect((await ask('/device/revoke', { token })).status).toBe(204)
    expect((await api.call('GET', '/tokens/current', { token })).body.code).toBe('token_revoked')
    for (const other of [token, 'brt_nobody']) {
      expect(await ask('/device/revoke', { token: other })).toMatchObject({ status: 204, body: undefined })
    }
    expect((await ask('/device/revoke', {})).status).toBe(422)
    const events = await api.call('GET', '/events?type=token.revoked&limit=1')
    expect(events.body.events[0]).toMatchObject({ subject: body.id, actor: body.id })
  })

  test('loses the token with the membership, and gets none if it ended before', async () => {
    const { browser, member } = await newPerson(api, { role: 'developer' })
    const [first, second] = [await begin(), await begin()]
    for (const { user_code: userCode } of [first, second]) {
      expect((await browser.ask('POST', '/device/answer', { userCode, approve: true })).status).toBe(204)
    }
    const token = (await poll(first.device_code)).body.access_token
    expect((await api.call('GET', '/projects', { token })).status).toBe(200)
    expect((await api.call('DELETE', `/members/${member.id}`)).status).toBe(204)
    await expect.poll(async () => (await api.call('GET', '/projects', { token })).status).toBe(401)
    expect((await poll(second.device_code)).body.code).toBe('expired_token')
  })

  test('is told that it was denied, that it asks too often, and that its time is over', async () => {
    const { browser } = await newPerson(api)
    const denied = await begin()
    const answer = { userCode: denied.user_code, approve: false }
    expect((await browser.ask('POST', '/device/answer', answer)).status).toBe(204)
    expect((await browser.ask('POST', '/device/answer', { ...answer, approve: true })).status).toBe(422)
    expect((await poll(denied.device_code)).body.code).toBe('access_denied')

    const hasty = await begin()
    expect((await poll(hasty.device_code)).body.code).toBe('authorization_pending')
    expect((await poll(hasty.device_code)).body.code).toBe('slow_down')
    await wait()
    expect((await poll(hasty.device_code)).body.code).toBe('authorization_pending')

    await api.db.deviceLogin.updateMany({ data: { expiresAt: new Date(Date.now() - 1) } })
    expect((await poll(hasty.device_code)).body.code).toBe('expired_token')
    const late = await browser.ask('POST', '/device/answer', { userCode: hasty.user_code, approve: true })
    expect(late.status).toBe(422)
    await deleteExpiredSignIns(api.db)
    expect(await api.db.deviceLogin.count()).toBe(0)
  })
})

describe('whoever is not the person', () => {
  test('approves nothing: without a session, or from another site', async () => {
    const { device_code, user_code: userCode } = await begin()
    const answer = { userCode, approve: true }
    expect((await program().ask('POST', '/device/answer', answer)).status).toBe(401)
    const { browser } = await newPerson(api)
    const elsewhere = { 'sec-fetch-site': 'cross-site' }
    expect((await browser.ask('POST', '/device/answer', answer, elsewhere)).body.code).toBe('cross_origin')
    expect((await browser.ask('POST', '/device/look', { userCode }, elsewhere)).body.code).toBe('cross_origin')
    expect((await poll(device_code)).body.code).toBe('authorization_pending')
  })

  test('is stopped after some guesses, and finds no code in the database', async () => {
    const { device_code, user_code } = await begin()
    const { browser } = await newPerson(api)
    const statuses = new Set<number>()
    for (let tries = 0; tries < 15; tries++) {
      statuses.add((await browser.ask('POST', '/device/look', { userCode: 'BBBB-BBBB' })).status)
    }
    expect([...statuses]).toEqual([422, 429])
    const rows = JSON.stringify(await api.db.deviceLogin.findMany())
    for (const secret of [device_code, user_code, user_code.replace('-', '')]) expect(rows).not.toContain(secret)
  })

  test('writes no control characters on the page of the person', async () => {
    const answer = await ask('/device', { client: 'berth\u001b[2J' })
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ pointer: '#/client' }] } })
  })
})
