import { createHmac, createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { type AddressInfo, createServer } from 'node:net'
import { expect, test } from 'vitest'
import { type AcmeOptions, createAcmeClient } from '../../../src/engines/certificates/acme-client.ts'
import { type Jws, keyAuthorization } from '../../../src/engines/certificates/acme-jws.ts'
import { AcmeProblem, Unreachable } from '../../../src/engines/certificates/acme-problem.ts'
import { createTransport, type Reply } from '../../../src/engines/certificates/acme-transport.ts'

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const base = 'https://authority.example'
const order = { status: 'pending', authorizations: [], finalize: `${base}/finalize` }
const problem = (code: string, status = 400): Partial<Reply> => ({
  status,
  data: { type: `urn:ietf:params:acme:error:${code}`, detail: code },
})
const orderMade = { status: 201, headers: { location: `${base}/order/1` }, data: order }

const decode = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())

type Sent = { url: string; header: Record<string, unknown>; payload: unknown; jws: Jws }

/** A client of an authority that answers signed requests by `answers`, one after the other; the last repeats. */
function clientOf(answers: Partial<Reply>[], more: Partial<AcmeOptions> = {}) {
  const sent: Sent[] = []
  const saved: string[] = []
  let nonces = 0
  const client = createAcmeClient({
    directoryUrl: `${base}/dir`,
    email: null,
    eab: null,
    account: {
      url: `${base}/account/1`,
      key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
      save: async (url) => void saved.push(url),
    },
    signal: new AbortController().signal,
    ...more,
    transport: {
      async request(url, method, body) {
        if (method === 'GET') {
          const [newNonce, newAccount, newOrder] = ['nonce', 'account', 'order'].map((name) => `${base}/${name}`)
          return { status: 200, headers: {}, data: { newNonce, newAccount, newOrder } }
        }
        const headers = { 'replay-nonce': `nonce-${++nonces}` }
        if (method === 'HEAD') return { status: 200, headers, data: '' }
        const jws = body as Jws
        sent.push({ url, header: decode(jws.protected), payload: jws.payload && decode(jws.payload), jws })
        const answer = answers[Math.min(sent.length, answers.length) - 1]!
        return { status: 200, data: '', ...answer, headers: { ...headers, ...answer.headers } }
      },
      close() {},
    },
  })
  return { client, sent, saved }
}

test('requests are signed by ES256, under the address of the account, each with a nonce of its own', async () => {
  const { client, sent } = clientOf([orderMade, { data: order }])
  await client.newOrder(['example.com'], null)
  await client.readOrder(`${base}/order/1`)
  expect(sent.map(({ header }) => header)).toEqual([
    { alg: 'ES256', kid: `${base}/account/1`, nonce: 'nonce-1', url: `${base}/order` },
    { alg: 'ES256', kid: `${base}/account/1`, nonce: 'nonce-2', url: `${base}/order/1` },
  ])
  expect(sent.map(({ payload }) => payload)).toEqual([{ identifiers: [{ type: 'dns', value: 'example.com' }] }, ''])
  for (const { jws } of sent) {
    const key = { key: createPublicKey(privateKey), dsaEncoding: 'ieee-p1363' as const }
    const signature = Buffer.from(jws.signature, 'base64url')
    expect(verify('sha256', Buffer.from(`${jws.protected}.${jws.payload}`), key, signature)).toBe(true)
  }
})

test('an account is made by its key, bound to the external one, and kept', async () => {
  const secret = Buffer.alloc(32, 7)
  const { client, sent, saved } = clientOf([{ status: 201, headers: { location: `${base}/account/2` } }, orderMade], {
    email: 'ops@example.com',
    eab: { kid: 'key-1', key: secret.toString('base64url') },
    account: {
      url: '',
      key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
      save: async (url) => void saved.push(url),
    },
  })
  await client.newOrder(['example.com'], null)
  const { crv, kty, x, y } = createPublicKey(privateKey).export({ format: 'jwk' })
  expect(sent[0]!.header).toMatchObject({ jwk: { crv, kty, x, y } })
  expect(sent[0]!.header).not.toHaveProperty('kid')
  const { externalAccountBinding: binding, ...payload } = sent[0]!.payload as Record<string, unknown>
  expect(payload).toEqual({ termsOfServiceAgreed: true, contact: ['mailto:ops@example.com'] })
  const bound = binding as Jws
  expect(decode(bound.protected)).toEqual({ alg: 'HS256', kid: 'key-1', url: `${base}/account` })
  expect(decode(bound.payload)).toEqual({ crv, kty, x, y })
  const mac = createHmac('sha256', secret).update(`${bound.protected}.${bound.payload}`).digest('base64url')
  expect(bound.signature).toBe(mac)
  expect(saved).toEqual([`${base}/account/2`])
  expect(sent[1]!.header.kid).toBe(`${base}/account/2`)
})

test('an account that the authority has lost is made again, once', async () => {
  const made = { status: 201, headers: { location: `${base}/account/2` } }
  const { client, sent, saved } = clientOf([problem('accountDoesNotExist'), made, orderMade])
  await client.newOrder(['example.com'], null)
  expect(saved).toEqual([`${base}/account/2`])
  expect(sent).toHaveLength(3)
  const lost = clientOf([problem('accountDoesNotExist'), made, problem('accountDoesNotExist')])
  await expect(lost.client.newOrder(['example.com'], null)).rejects.toThrow(AcmeProblem)
  expect(lost.sent).toHaveLength(3)
})

test('a refused nonce is replaced by the one that comes with the refusal, up to a bound', async () => {
  const { client, sent } = clientOf([problem('badNonce'), problem('badNonce'), orderMade])
  await client.newOrder(['example.com'], null)
  expect(sent.map(({ header }) => header.nonce)).toEqual(['nonce-1', 'nonce-2', 'nonce-3'])
  const stubborn = clientOf([problem('badNonce')])
  await expect(stubborn.client.newOrder(['example.com'], null)).rejects.toMatchObject({ code: 'badNonce' })
  expect(stubborn.sent).toHaveLength(13)
})

test('no other refusal is tried again, and its Retry-After is kept', async () => {
  for (const [code, status] of [
    ['rateLimited', 429],
    ['serverInternal', 500],
  ] as const) {
    const { client, sent } = clientOf([{ ...problem(code, status), headers: { 'retry-after': '60' } }])
    const error = await client.newOrder(['example.com'], null).catch((thrown) => thrown)
    expect(error).toMatchObject({ code, status, retryAt: expect.any(Date) })
    expect(sent).toHaveLength(1)
  }
})

test('an order that names what it replaces is made without where that was replaced already', async () => {
  const { client, sent } = clientOf([problem('alreadyReplaced', 409), orderMade])
  await client.newOrder(['example.com'], 'abc.def')
  expect(sent.map(({ payload }) => (payload as { replaces?: string }).replaces)).toEqual(['abc.def', undefined])
})

test('answers that are not what the RFC says are the authority’s fault', async () => {
  const answers: Partial<Reply>[] = [
    { status: 201, data: order },
    { ...orderMade, data: { ...order, authorizations: null } },
    { ...orderMade, data: 'hello' },
    { ...orderMade, status: 302 },
  ]
  for (const answer of answers) {
    await expect(clientOf([answer]).client.newOrder(['example.com'], null)).rejects.toThrow(
      /^The certificate authority sent an invalid response/,
    )
  }
})

test('challenges that have no token are left out, and wildcards have their star', async () => {
  const known = { type: 'dns-01', url: `${base}/challenge/1`, status: 'pending', token: 'abc' }
  const other = { type: 'dns-persist-01', url: `${base}/challenge/2`, status: 'pending' }
  const identifier = { type: 'dns', value: 'example.com' }
  const { client } = clientOf([{ data: { identifier, wildcard: true, status: 'pending', challenges: [other, known] } }])
  expect(await client.readAuthorization(`${base}/authorization/1`)).toEqual({
    hostname: '*.example.com',
    status: 'pending',
    challenges: [known],
  })
})

test('key authorizations are those of RFC 8555, by the thumbprint of RFC 7638', () => {
  // The key of RFC 7515, section A.3.
  const jwk = {
    crv: 'P-256',
    kty: 'EC',
    x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
    y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
  }
  const value = 'token.oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U'
  expect(keyAuthorization({ jwk }, 'http-01', 'token')).toBe(value)
  expect(keyAuthorization({ jwk }, 'dns-01', 'token')).toMatch(/^[\w-]{43}$/)
})

test('a server that does not answer is given up after a while, and at once when the caller stops', async () => {
  const silent = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => silent.once('listening', resolve))
  const url = `https://127.0.0.1:${(silent.address() as AddressInfo).port}/dir`
  const transport = createTransport(null, 100)
  try {
    const waiting = transport.request(url, 'GET', null, new AbortController().signal)
    await expect(waiting).rejects.toThrow(/cannot be reached: no answer within 0.1 s\.$/)
    await expect(waiting).rejects.toBeInstanceOf(Unreachable)
    const stopping = new AbortController()
    const stopped = transport.request(url, 'GET', null, stopping.signal)
    stopping.abort()
    await expect(stopped).rejects.toMatchObject({ name: 'AbortError' })
  } finally {
    transport.close()
    silent.close()
  }
})
