// Requests whose body comes late: the token counts as it is when the change is made, not when the request began.
import { request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { tarEnd, tarHeader, tarPadding } from '../../src/platform/files/tar.ts'
import { sharedApi } from '../helpers/api.ts'

const api = await sharedApi()
afterAll(() => api.stop())
await api.listen()
const { port } = api.app.server.address() as AddressInfo

/** Sends the head of a request, calls `meanwhile` when the server has let it in, and then sends the body. */
async function hold(token: string, method: string, path: string, body: object, meanwhile: () => Promise<unknown>) {
  const type = Buffer.isBuffer(body) ? 'application/x-tar' : 'application/json'
  // So that the server knows the token, and needs no time to let the request in.
  expect((await api.call('GET', '/projects', { token })).status).toBe(200)
  const head = { authorization: `Bearer ${token}`, 'content-type': type, expect: '100-continue' }
  return new Promise<{ status: number; code?: string }>((resolve, reject) => {
    const request = send({ port, host: '127.0.0.1', method, path: `/api${path}`, headers: head })
    request.on('error', reject)
    request.on('continue', () =>
      meanwhile().then(() => request.end(Buffer.isBuffer(body) ? body : JSON.stringify(body)), reject),
    )
    request.on('response', async (response) => {
      let text = ''
      for await (const chunk of response) text += chunk
      resolve({ status: response.statusCode!, ...(response.statusCode! >= 400 && { code: JSON.parse(text).code }) })
    })
    request.flushHeaders()
  })
}

const content = Buffer.from('hello')
const header = tarHeader({ kind: 'file', path: 'index.html', mode: 0o644, size: content.length })
const archive = Buffer.concat([header, content, tarPadding(content.length), tarEnd])

const newToken = async () => (await api.call('POST', '/tokens', { body: { name: 'held', scopes: ['*'] } })).body

describe('a change that was begun', () => {
  test.each([
    ['POST', '/projects', { name: 'kept', repo: 'a/b' }],
    ['POST', '/webhooks', { url: 'https://receiver.example/kept', events: ['*'] }],
    ['POST', '/deployments?project=theirs&production=true', archive],
    ['POST', '/deployments/archive?project=theirs&production=true', archive],
    ['PUT', '/projects/theirs/oidc', { issuer: 'https://issuer.example', claims: { sub: 'me' } }],
  ])('by %s %s is not made once its token is revoked or narrowed', async (method, path, body) => {
    await api.newProject('theirs').catch(() => {})
    const [revoked, narrowed, good] = [await newToken(), await newToken(), await newToken()]
    const end = () => api.call('DELETE', `/tokens/${revoked.id}`)
    expect(await hold(revoked.secret, method, path, body, end)).toEqual({ status: 401, code: 'token_revoked' })
    const narrow = () => api.call('PATCH', `/tokens/${narrowed.id}`, { body: { scopes: ['projects:read'] } })
    expect(await hold(narrowed.secret, method, path, body, narrow)).toEqual({ status: 403, code: 'insufficient_scope' })
    expect((await hold(good.secret, method, path, body, async () => {})).status).toBeLessThan(300)
  })

  test('is made where the token may still do it, and nowhere else', async () => {
    const [mine, other] = [await api.newProject('mine'), await api.newProject('other')]
    const token = await newToken()
    const narrow = () => api.call('PATCH', `/tokens/${token.id}`, { body: { projects: [mine.name] } })
    const deploys = await newToken()
    const narrowOther = () => api.call('PATCH', `/tokens/${deploys.id}`, { body: { projects: [mine.name] } })
    const body = { settings: { hsts: true } }
    const notFound = { status: 404, code: 'not_found' }
    expect(await hold(token.secret, 'PATCH', `/projects/${other.name}`, body, narrow)).toEqual(notFound)
    const path = `/deployments/archive?project=${other.name}`
    expect(await hold(deploys.secret, 'POST', path, archive, narrowOther)).toEqual(notFound)
  })
})
