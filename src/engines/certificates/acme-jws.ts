// ACME signatures: JWS with ES256 and the account key (RFC 8555, section 6.2), and HS256 for external accounts.
import { createHmac, createPrivateKey, createPublicKey, hash, type KeyObject, sign } from 'node:crypto'

/** The public key, with the members that RFC 7638 hashes, in that order. */
export type Jwk = { crv: string; kty: string; x: string; y: string }

export type AccountKey = { privateKey: KeyObject; jwk: Jwk }

export type Jws = { protected: string; payload: string; signature: string }

export type ExternalAccount = {
  kid: string
  /** In base64url, as issued by the authority. */
  key: string
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** `pem` is a private key on P-256. */
export function readAccountKey(pem: string): AccountKey {
  const privateKey = createPrivateKey(pem)
  const { crv, kty, x, y } = createPublicKey(privateKey).export({ format: 'jwk' })
  if (crv !== 'P-256') throw new Error('The key of an ACME account must be on P-256.')
  return { privateKey, jwk: { crv, kty: kty!, x: x!, y: y! } }
}

/** Signs a request, identified by the account URL if there is one, else by the key. A null payload is a POST-as-GET. */
export function signRequest(
  { privateKey, jwk }: AccountKey,
  { kid, ...header }: { kid: string | null; nonce: string; url: string },
  payload: object | null,
): Jws {
  const protectedPart = encode({ alg: 'ES256', ...(kid === null ? { jwk } : { kid }), ...header })
  const payloadPart = payload === null ? '' : encode(payload)
  const data = Buffer.from(`${protectedPart}.${payloadPart}`)
  const signature = sign('sha256', data, { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')
  return { protected: protectedPart, payload: payloadPart, signature }
}

/** Section 7.3.4: binds the new account's key to the external account. */
export function bindExternalAccount({ jwk }: AccountKey, url: string, { kid, key }: ExternalAccount): Jws {
  const protectedPart = encode({ alg: 'HS256', kid, url })
  const payloadPart = encode(jwk)
  const signature = createHmac('sha256', Buffer.from(key, 'base64url'))
    .update(`${protectedPart}.${payloadPart}`)
    .digest('base64url')
  return { protected: protectedPart, payload: payloadPart, signature }
}

/** Sections 8.1, 8.3 and 8.4: the content for http-01, or its digest for dns-01. */
export function keyAuthorization({ jwk }: Pick<AccountKey, 'jwk'>, type: string, token: string): string {
  const value = `${token}.${hash('sha256', JSON.stringify(jwk), 'base64url')}`
  return type === 'dns-01' ? hash('sha256', value, 'base64url') : value
}
