import { createHmac, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sharedApi, startApi, type TestApi } from '../../helpers/api.ts'

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 })

let api: TestApi
let issuerServer: Server
let issuer: string
let asked: string[] = []
beforeAll(async () => {
  issuerServer = createServer((request, response) => {
    asked.push(request.url!)
    const jwk = (key: KeyObject, kid: string) => ({ ...key.export({ format: 'jwk' }), kid, use: 'sig' })
    response.end(
      request.url === '/keys'
        ? JSON.stringify({ keys: [jwk(rsa.publicKey, 'rsa'), jwk(ec.publicKey, 'ec')] })
        : JSON.stringify({ issuer, jwks_uri: `${issuer}/keys` }),
    )
  })
  await new Promise<void>((resolve) => issuerServer.listen(0, '127.0.0.1', resolve))
  issuer = `http://127.0.0.1:${(issuerServer.address() as AddressInfo).port}`
  api = await startApi({ WEBHOOK_ALLOW_PRIVATE: 'true' })
})
afterAll(async () => {
  await api.stop()
  issuerServer.close()
})

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
type Options = { alg?: string; kid?: string; key?: KeyObject }

function jwt(claims: object = {}, { alg = 'RS256', kid = 'rsa', key = rsa.privateKey }: Options = {}): string {
  const now = Math.floor(Date.now() / 1000)
  const usual = {
    iss: issuer,
    aud: api.deps.urls.api,
    sub: 'repo:me/site',
    repository: 'me/site',
    iat: now,
    exp: now + 300,
  }
  const signed = `${part({ alg, kid })}.${part({ ...usual, jti: randomUUID(), ...claims })}`
  if (alg === 'none') return `${signed}.e30`
  if (alg === 'HS256') {
    const secret = rsa.publicKey.export({ type: 'spki', format: 'pem' })
    return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
  }
  return `${signed}.${sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

async function exchange(token: string, project: string) {
  const answer = await api.app.inject({ method: 'POST', url: '/auth/oidc/token', payload: { token, project } })
  return { status: answer.statusCode, body: answer.json() }
}

let made = 0
async function trusting(more: object = {}) {
  const name = `ci-${++made}`
  const { id } = await api.newProject(name)
  const body = { issuer, claims: { repository: 'me/site' }, ...more }
  const put = await api.call('PUT', `/projects/${name}/oidc`, { body })
  expect(put.status).toBe(200)
  return { name, id }
}

describe('a token of CI', () => {
  test.each([
    ['RS256', {}],
    ['ES256', { alg: 'ES256', kid: 'ec', key: ec.privateKey }],
  ])('signed with %s is exchanged for one that deploys this project and does nothing else', async (_alg, options) => {
    const { name, id } = await trusting()
    const { status, body } = await exchange(jwt({}, options), name)
    expect(status).toBe(200)
    expect(body).toMatchObject({ project: name, projectId: id, scopes: ['projects:read', 'deployments:write'] })
    expect(Date.parse(body.expiresAt) - Date.now()).toBeLessThanOrEqual(15 * 60_000)
    const { token } = body
    const call = (method: string, path: string, body?: object) =>
      api.call(method, path, body === undefined ? { token } : { token, body })
    expect((await call('POST', '/deployments', { project: name })).status).toBe(201)
    const other = await trusting()
    expect((await call('POST', '/deployments', { project: other.name })).status).toBe(404)
    expect((await call('PATCH', `/projects/${name}`, { settings: { hsts: true } })).status).toBe(403)
    expect((await call('POST', '/tokens', { name: 'more' })).status).toBe(403)
    expect((await call('GET', '/domains')).status).toBe(403)
    expect((await api.call('DELETE', `/projects/${name}/oidc`)).status).toBe(204)
    expect((await call('GET', `/projects/${name}`)).body.code).toBe('token_revoked')
  })

  test('is taken once, also by the id of the project', async () => {
    const { name, id } = await trusting()
    const token = jwt()
    expect((await exchange(token, id)).status).toBe(200)
    const again = await exchange(token, name)
    expect(again).toMatchObject({ status: 403, body: { code: 'oidc_token_refused' } })
    expect(again.body.detail).toContain('already exchanged')
    const unnamed = jwt({ jti: undefined })
    expect((await exchange(unnamed, name)).status).toBe(200)
    expect((await exchange(unnamed, name)).status).toBe(403)
  })

  test('is refused where it is not what the project trusts', async () => {
    const { name } = await trusting({ claims: { repository: 'me/site', ref: 'refs/heads/main' }, audience: 'berth' })
    const good = { aud: ['other', 'berth'], ref: 'refs/heads/main' }
    const now = Math.floor(Date.now() / 1000)
    const bad: [string, Options?][] = [
      [jwt({ ...good, ref: 'refs/heads/evil' })],
      [jwt({ ...good, ref: ['refs/heads/main'] })],
      [jwt({ ...good, ref: undefined })],
      [jwt({ ...good, repository: 'you/site' })],
      [jwt({ ...good, aud: 'else' })],
      [jwt({ ...good, exp: now - 120 })],
      [jwt({ ...good, nbf: now + 600 })],
      [jwt({ ...good, iat: now + 600 })],
      [jwt({ ...good, exp: now + 40 * 24 * 3600 })],
      [jwt({ ...good, exp: undefined })],
      [jwt({ ...good, iss: 'https://elsewhere.example' })],
      [jwt(good, { key: stranger.privateKey })],
      [jwt(good, { kid: 'unknown' })],
      [jwt(good, { alg: 'none' })],
      [jwt(good, { alg: 'HS256' })],
      [jwt(good, { alg: 'ES256', kid: 'rsa' })],
      [
        jwt(good).replace(
          /\.[^.]+\./,
          `.${part({ ...good, iss: issuer, repository: 'me/site', iat: now, exp: now + 9 })}.`,
        ),
      ],
      ['a.b.c'],
      ['not a token'],
    ]
    for (const [token] of bad) {
      expect(await exchange(token, name)).toMatchObject({ status: 403, body: { code: 'oidc_token_refused' } })
    }
    expect((await exchange(jwt(good), 'nobody')).status).toBe(403)
    expect((await exchange(jwt(good), name)).status).toBe(200)
  })

  test('that two projects of one name trust goes to neither, but to the one whose id is sent', async () => {
    const { name, id } = await trusting()
    const { token } = await api.newAccount()
    await api.call('POST', '/projects', { token, body: { name, repo: 'a/b' } })
    await api.call('PUT', `/projects/${name}/oidc`, { token, body: { issuer, claims: { repository: 'me/site' } } })
    expect((await exchange(jwt(), name)).body.detail).toContain('Send the project id')
    expect((await exchange(jwt(), id)).body).toMatchObject({ projectId: id })
  })

  test('of an issuer that no such project trusts has nobody asked', async () => {
    asked = []
    await exchange(jwt(), 'no-such-project')
    expect(asked).toEqual([])
  })
})

describe('the trust of a project', () => {
  test('is refused where it would trust everybody, or an address that is not public', async () => {
    const { name } = await api.newProject('careful')
    const put = (body: object) => api.call('PUT', `/projects/${name}/oidc`, { body })
    const open = await put({ issuer, claims: { ref: 'refs/heads/main' } })
    expect({ status: open.status, at: open.body.errors[0].pointer }).toEqual({ status: 422, at: '#/claims' })
    const bad = await put({ issuer: 'ftp://issuer.example', claims: { sub: 'x' } })
    expect({ status: bad.status, at: bad.body.errors[0].pointer }).toEqual({ status: 422, at: '#/issuer' })
    expect((await api.call('GET', `/projects/${name}/oidc`)).status).toBe(404)
  })

  test('grants no scope that the caller lacks', async () => {
    const { name } = await api.newProject('narrow')
    const { body } = await api.call('POST', '/tokens', { body: { name: 'n', scopes: ['projects:write'] } })
    const put = (more: object) =>
      api.call('PUT', `/projects/${name}/oidc`, { token: body.token, body: { issuer, claims: { sub: 'x' }, ...more } })
    expect((await put({ scopes: ['deployments:write'] })).body.requiredScope).toBe('deployments:write')
    // Left out, it is what the caller has of the usual ones.
    expect((await put({})).body.scopes).toEqual(['projects:read'])
  })
})

describe('without WEBHOOK_ALLOW_PRIVATE, an issuer', () => {
  let strict: TestApi
  beforeAll(async () => {
    strict = await sharedApi()
    await strict.newProject('strict')
  })
  afterAll(() => strict.stop())
  const put = (address: string) =>
    strict.call('PUT', '/projects/strict/oidc', { body: { issuer: address, claims: { repository: 'me/site' } } })

  test.each([
    ['http://localhost:8080', 'https://'],
    ['http://127.0.0.1:8080', 'https://'],
    ['http://issuer.example', 'https://'],
    ['https://localhost', 'private or local'],
    ['https://ci.localhost.', 'private or local'],
    ['https://127.0.0.1', 'private or local'],
    ['https://2130706433', 'private or local'],
    ['https://10.0.0.7', 'private or local'],
    ['https://169.254.169.254', 'private or local'],
    ['https://[::1]:8443', 'private or local'],
    ['https://[::ffff:10.0.0.7]', 'private or local'],
    ['https://vm', 'private or local'],
    ['https://VM.:8443', 'private or local'],
    ['https://a.internal', 'private or local'],
    ['https://ci.local', 'private or local'],
    ['https://ci.home.arpa', 'private or local'],
    ['https://home.arpa', 'private or local'],
    ['https://issuer.test', 'private or local'],
    ['https://issuer.invalid.', 'private or local'],
  ])('%s is refused', async (address, why) => {
    const { status, body } = await put(address)
    expect({ status, at: body.errors?.[0].pointer }).toEqual({ status: 422, at: '#/issuer' })
    expect(body.errors[0].detail).toContain(why)
  })

  test('that was trusted before is asked for nothing, and whoever sends its token is told why', async () => {
    expect((await put('https://issuer.example')).status).toBe(200)
    await strict.db.oidcTrust.updateMany({ data: { issuer } })
    asked = []
    const payload = { token: jwt({ aud: strict.deps.urls.api }), project: 'strict' }
    const answer = await strict.app.inject({ method: 'POST', url: '/auth/oidc/token', payload })
    expect(answer.json()).toMatchObject({ status: 403, code: 'oidc_token_refused' })
    expect(answer.json().detail).toContain(`${issuer} must start with https://`)
    expect(asked).toEqual([])
  })
})
