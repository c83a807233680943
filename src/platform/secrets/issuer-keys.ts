// Tokens of OpenID Connect that others signed: their form, and their signature by the keys that the issuer publishes.
import { createPublicKey, hash, type JsonWebKey, verify } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import { LRUCache } from 'lru-cache'
import { Fault } from '../errors.ts'
import { checkedLookup, type Reach } from '../http/checked-lookup.ts'
import { hostRefusal, isLoopback } from '../http/public-address.ts'
import { rejectUnexpectedResponses } from '../http/unexpected-responses.ts'

export type Claims = Record<string, unknown> & { iss: string; exp: number; iat: number }

/** A token that was read and not yet verified. */
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

// PostgreSQL stores no NUL.
const isText = (value: unknown): value is string => typeof value === 'string' && !value.includes('\0')

/** Reads a token and what it says of itself. Nothing of it is true before `verify`. */
export function readToken(text: string): ReadToken {
  const [, head = '', body = '', tail = ''] = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(text) ?? []
  if (tail === '') throw refuse('The token is not a JSON Web Token.')
  const [header, claims] = [objectIn(head), objectIn(body)]
  const { alg, kid } = header
  // Neither `none` nor a shared secret: only a key pair says who signed.
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

/** What a token is known by when it comes again; without a `jti`, by what is signed: a signature can be written otherwise. */
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

/** Why somebody cannot be an issuer, or null. */
export function issuerRefusal(
  issuer: string,
  { production }: IssuerRules,
  { mayReach }: Pick<Reach, 'mayReach'>,
): string | null {
  if (!URL.canParse(issuer)) return 'must be an absolute https:// URL'
  const { protocol, hostname, username, password, search, hash: fragment } = new URL(issuer)
  // Whoever is on the way could publish keys of their own. In development, one on this machine goes without TLS where
  // requests may reach it at all.
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
        // Nobody is followed to another address, which nobody has checked.
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

// Whoever is trusted chooses the keys, and everybody waits while a signature is checked: with the longest numbers that
// OpenSSL takes, 50 ms for each key.
const maxTried = 10
const maxModulusLength = 8192
const maxExponent = 2n ** 32n

const keptMs = 10 * 60_000
// A key that is not known may be a new one; whoever invents names of keys has them asked for no more often.
const againMs = 30_000

export type IssuerKeys = {
  /** Throws unless the issuer that it names signed it, and it is valid now. */
  verify(token: ReadToken): Promise<Claims>
}

export function createIssuerKeys(rules: IssuerRules, reach: Reach): IssuerKeys {
  const known = new LRUCache<string, { keys: Promise<Jwk[]>; at: number }>({ max: 200, ttl: keptMs })

  async function ask(issuer: string): Promise<Jwk[]> {
    const document = await getJson(`${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`, rules, reach)
    if (document.issuer !== issuer) throw new Error(`${issuer} identifies itself as another issuer`)
    const { keys } = await getJson(String(document.jwks_uri), rules, reach)
    if (!Array.isArray(keys)) throw new Error(`${issuer} publishes no keys`)
    return keys.filter((key) => key !== null && typeof key === 'object').slice(0, 100)
  }

  async function keysOf(issuer: string, olderThanMs: number): Promise<Jwk[]> {
    const before = known.get(issuer)
    if (before && Date.now() - before.at < olderThanMs) return before.keys
    const keys = ask(issuer)
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
      const { modulusLength: long = 2048, publicExponent = 0n } = publicKey.asymmetricKeyDetails ?? {}
      if (long < 2048 || long > maxModulusLength || publicExponent > maxExponent) return false
      return verify('sha256', Buffer.from(signed), { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)
    } catch {
      return false
    }
  }

  return {
    async verify(token) {
      checkTimes(token.claims)
      const { iss } = token.claims
      // A project may trust it since before this was refused.
      const refusal = issuerRefusal(iss, rules, reach)
      if (refusal) throw refuse(`The issuer ${iss} ${refusal}. Choose another issuer for the project.`)
      let keys = (await keysOf(iss, keptMs)).filter(fits(token))
      if (keys.length === 0) keys = (await keysOf(iss, againMs)).filter(fits(token))
      if (!keys.slice(0, maxTried).some((key) => isSignedBy(key, token)))
        throw refuse('The token is not signed by its issuer.')
      return token.claims
    },
  }
}
