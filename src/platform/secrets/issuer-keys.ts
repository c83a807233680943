// Verifies OpenID Connect tokens of other issuers: their format, and their signature against the keys that the issuer publishes.
import { createPublicKey, hash, type JsonWebKey, verify } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import { LRUCache } from 'lru-cache'
import { Fault } from '../errors.ts'
import { checkedLookup, type Reach } from '../http/checked-lookup.ts'
import { hostRefusal, isLoopback } from '../http/public-address.ts'
import { rejectUnexpectedResponses } from '../http/unexpected-responses.ts'

export type Claims = Record<string, unknown> & { iss: string; exp: number; iat: number }

/** A parsed token that isn't verified yet. */
export type ReadToken = {
  claims: Claims
  alg: 'RS256' | 'ES256'
  kid: string | null
  signed: string
  signature: Buffer
}

const refuse = (why: string, cause?: unknown) => new Fault('oidc_token_refused', why, { cause })

function objectIn(part: string): Record<string, unknown> {
  try {
    const value = JSON.parse(Buffer.from(part, 'base64url').toString())
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) return value
  } catch {
    // Refused below.
  }
  throw refuse('The token is not a JSON Web Token.')
}

// PostgreSQL can't store NUL.
const isText = (value: unknown): value is string => typeof value === 'string' && !value.includes('\0')

/** Parses a token and its claims. None of them may be trusted before `verify`. */
export function readToken(text: string): ReadToken {
  const [, head = '', body = '', tail = ''] = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(text) ?? []
  if (tail === '') throw refuse('The token is not a JSON Web Token.')
  const [header, claims] = [objectIn(head), objectIn(body)]
  const { alg, kid } = header
  // Neither `none` nor a shared secret: only a key pair proves who signed.
  if ((alg !== 'RS256' && alg !== 'ES256') || 'crit' in header) {
    throw refuse('The token must be signed with RS256 or ES256.')
  }
  const { iss, exp, iat } = claims
  if (!isText(iss) || typeof exp !== 'number' || typeof iat !== 'number') {
    throw refuse('The token must have the claims iss, exp and iat.')
  }
  return {
    claims: claims as Claims,
    alg,
    kid: typeof kid === 'string' ? kid : null,
    signed: `${head}.${body}`,
    signature: Buffer.from(tail, 'base64url'),
  }
}

/** Identifies a token that is sent again. Without a `jti`, this hashes what is signed, because signatures can be encoded differently. */
export function idOf({ claims, signed }: ReadToken): string {
  const { jti } = claims
  return isText(jti) && jti !== '' && jti.length <= 200 ? jti : hash('sha256', signed, 'base64url')
}

const leewaySeconds = 60
const maxSeconds = 24 * 3600

function checkTimes({ exp, iat, nbf }: Claims): void {
  const now = Date.now() / 1000
  if (exp <= now - leewaySeconds) throw refuse('The token has expired.')
  const early = [iat, nbf].some((time) => typeof time === 'number' && time > now + leewaySeconds)
  if (early || (nbf !== undefined && typeof nbf !== 'number')) throw refuse('The token is not valid yet.')
  if (exp > now + maxSeconds) throw refuse('The token is valid for more than a day.')
}

export type IssuerRules = { production: boolean }

/** Why a URL can't be an issuer; null if it can. */
export function issuerRefusal(
  issuer: string,
  { production }: IssuerRules,
  { mayReach }: Pick<Reach, 'mayReach'>,
): string | null {
  if (!URL.canParse(issuer)) return 'must be an absolute https:// URL'
  const { protocol, hostname, username, password, search, hash: fragment } = new URL(issuer)
  // An attacker in between could publish their own keys. In development, an issuer on this machine needs no TLS, if requests
  // may reach it at all.
  const refusal = hostRefusal(hostname, mayReach)
  const isPlain = protocol === 'http:' && !production && isLoopback(hostname) && !refusal
  if (protocol !== 'https:' && !isPlain) return 'must start with https://'
  if (username || password || search || fragment) return 'must not have credentials, a query or a fragment'
  return refusal
}

const timeoutMs = 5_000
const maxBytes = 256 * 1024

async function getJson(url: string, rules: IssuerRules, reach: Reach): Promise<Record<string, unknown>> {
  const refusal = issuerRefusal(url, rules, reach)
  if (refusal) throw new Error(`the URL ${url} ${refusal}`)
  const { get } = url.startsWith('https:') ? https : http
  const text = await new Promise<string>((resolve, reject) => {
    const options = { agent: false, lookup: checkedLookup(reach), signal: AbortSignal.timeout(timeoutMs) } as const
    const sent = get(
      url,
      { ...options, headers: { accept: 'application/json', 'user-agent': 'Berth' } },
      (response) => {
        // Redirects aren't followed, because nobody has checked where they lead.
        if (response.statusCode !== 200)
          return void sent.destroy(new Error(`${url} responded with ${response.statusCode}`))
        let body = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          body += chunk
          if (body.length > maxBytes) sent.destroy(new Error(`the response of ${url} is too large`))
        })
        response.on('end', () => resolve(body))
        response.on('error', reject)
      },
    )
    rejectUnexpectedResponses(sent, reject)
    sent.on('error', reject)
  })
  return JSON.parse(text)
}

type Jwk = JsonWebKey & { kid?: string; use?: string; alg?: string }

// The issuer chooses the keys, and checking a signature blocks the process: 50 ms per key, with the largest numbers that
// OpenSSL accepts.
const maxKeysTried = 10
const maxModulusLength = 8192
const maxExponent = 2n ** 32n

const ttlMs = 10 * 60_000
// An unknown key may be new. Requests with invented key names can't make us fetch more often than this.
const refetchMs = 30_000

export type IssuerKeys = {
  /** Throws unless the issuer that the token names has signed it, and it is valid now. */
  verify(token: ReadToken): Promise<Claims>
}

export function createIssuerKeys(rules: IssuerRules, reach: Reach): IssuerKeys {
  const known = new LRUCache<string, { keys: Promise<Jwk[]>; at: number }>({ max: 200, ttl: ttlMs })

  async function fetchKeys(issuer: string): Promise<Jwk[]> {
    const document = await getJson(`${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`, rules, reach)
    if (document.issuer !== issuer) throw new Error(`${issuer} identifies itself as another issuer`)
    const { keys } = await getJson(String(document.jwks_uri), rules, reach)
    if (!Array.isArray(keys)) throw new Error(`${issuer} publishes no keys`)
    return keys.filter((key) => key !== null && typeof key === 'object').slice(0, 100)
  }

  async function keysOf(issuer: string, maxAgeMs: number): Promise<Jwk[]> {
    const before = known.get(issuer)
    if (before && Date.now() - before.at < maxAgeMs) return before.keys
    const keys = fetchKeys(issuer)
    known.set(issuer, { keys, at: Date.now() })
    try {
      return await keys
    } catch (cause) {
      known.delete(issuer)
      throw new Fault('identity_provider_unavailable', undefined, { cause, retryAfterSeconds: 10 })
    }
  }

  const fits = (token: ReadToken) => (key: Jwk) =>
    (token.kid === null || key.kid === token.kid) &&
    (key.use === undefined || key.use === 'sig') &&
    (key.alg === undefined || key.alg === token.alg) &&
    (token.alg === 'RS256' ? key.kty === 'RSA' : key.kty === 'EC' && key.crv === 'P-256')

  function isSignedBy(key: Jwk, { signed, signature }: ReadToken): boolean {
    try {
      const publicKey = createPublicKey({ key, format: 'jwk' })
      const { modulusLength = 2048, publicExponent = 0n } = publicKey.asymmetricKeyDetails ?? {}
      if (modulusLength < 2048 || modulusLength > maxModulusLength || publicExponent > maxExponent) return false
      return verify('sha256', Buffer.from(signed), { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)
    } catch {
      return false
    }
  }

  return {
    async verify(token) {
      checkTimes(token.claims)
      const { iss } = token.claims
      // A project may trust an issuer that was allowed earlier.
      const refusal = issuerRefusal(iss, rules, reach)
      if (refusal) throw refuse(`The issuer ${iss} ${refusal}. Choose another issuer for the project.`)
      let keys = (await keysOf(iss, ttlMs)).filter(fits(token))
      if (keys.length === 0) keys = (await keysOf(iss, refetchMs)).filter(fits(token))
      if (!keys.slice(0, maxKeysTried).some((key) => isSignedBy(key, token)))
        throw refuse('The token is not signed by its issuer.')
      return token.claims
    },
  }
}
