// Keys of issuers, which strangers choose: what they sign is checked, at a bounded cost.
import { createPrivateKey, generateKeyPairSync, type JsonWebKey, type KeyObject, sign } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createReach } from '../../src/platform/http/checked-lookup.ts'
import { createIssuerKeys, idOf, readToken } from '../../src/platform/secrets/issuer-keys.ts'

const pair = () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const own = pair()

let published: unknown[] = []
let server: Server
let issuer: string
beforeAll(async () => {
  server = createServer((request, response) => {
    const answer = request.url === '/keys' ? { keys: published } : { issuer, jwks_uri: `${issuer}/keys` }
    response.end(JSON.stringify(answer))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => void server.close())

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

function jwt(key: KeyObject, claims: object = {}, header: object = {}): string {
  const now = Math.floor(Date.now() / 1000)
  const signed = `${part({ alg: 'RS256', ...header })}.${part({ iss: issuer, iat: now, exp: now + 300, ...claims })}`
  return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`
}

function publicOf(key: KeyObject): JsonWebKey {
  const { kty, n, e } = key.export({ format: 'jwk' })
  return { kty: kty!, n: n!, e: e! }
}

const verify = (keys: unknown[], token: string) => {
  published = keys
  return createIssuerKeys({ production: false }, createReach({ webhookAllowPrivate: true, dnsResolvers: [] })).verify(
    readToken(token),
  )
}
const refused = { code: 'oidc_token_refused' }

const numberIn = (text: string) => BigInt(`0x${Buffer.from(text, 'base64url').toString('hex')}`)
function textOf(number: bigint): string {
  const hex = number.toString(16)
  return Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex').toString('base64url')
}

/** By Euclid's algorithm; undefined if there is none. */
function inverse(value: bigint, modulus: bigint): bigint | undefined {
  let [a, b, x, y] = [value % modulus, modulus, 1n, 0n]
  while (b > 0n) [a, b, x, y] = [b, a % b, y, x - (a / b) * y]
  return a === 1n ? ((x % modulus) + modulus) % modulus : undefined
}

/** The same pair of primes with another public exponent. */
function withExponent(key: KeyObject, atLeast: bigint): KeyObject {
  const jwk = key.export({ format: 'jwk' })
  const [p, q] = [numberIn(jwk.p!), numberIn(jwk.q!)]
  const order = (p - 1n) * (q - 1n)
  let e = atLeast | 1n
  while (inverse(e, order) === undefined) e += 2n
  const d = inverse(e, order)!
  const numbers = { e: textOf(e), d: textOf(d), dp: textOf(d % (p - 1n)), dq: textOf(d % (q - 1n)) }
  return createPrivateKey({ key: { ...jwk, ...numbers }, format: 'jwk' })
}

describe('the keys of an issuer', () => {
  test('verify what one of them signed, whatever else is among them', async () => {
    const keys = [null, 7, 'key', [], {}, { kty: 'RSA' }, { kty: 'RSA', n: 7, e: 'AQAB' }, publicOf(own)]
    await expect(verify(keys, jwt(own))).resolves.toMatchObject({ iss: issuer })
    await expect(verify(keys, jwt(pair()))).rejects.toMatchObject(refused)
  })

  test('are not used where a signature would take long to check', async () => {
    const usual = withExponent(own, 1n << 31n)
    await expect(verify([publicOf(usual)], jwt(usual))).resolves.toMatchObject({ iss: issuer })
    const slow = withExponent(own, 1n << 2000n)
    await expect(verify([publicOf(slow)], jwt(slow))).rejects.toMatchObject(refused)
  })

  test('are tried a few at a time, however many are published', async () => {
    const others = (count: number) => Array.from({ length: count }, () => publicOf(stranger))
    const stranger = pair()
    await expect(verify([...others(9), publicOf(own)], jwt(own))).resolves.toMatchObject({ iss: issuer })
    await expect(verify([...others(99), publicOf(own)], jwt(own))).rejects.toMatchObject(refused)
    const named = [...others(98).map((key) => ({ ...key, kid: 'other' })), { ...publicOf(own), kid: 'own' }]
    await expect(verify(named, jwt(own, {}, { kid: 'own' }))).resolves.toMatchObject({ iss: issuer })
  })
})

test('a token with a NUL, which no database stores, names no issuer and is known by its hash', () => {
  expect(() => readToken(jwt(own, { iss: 'https://issuer.example\0' }))).toThrow(expect.objectContaining(refused))
  expect(idOf(readToken(jwt(own, { jti: 'a\0b' })))).toMatch(/^[\w-]{43}$/)
})
