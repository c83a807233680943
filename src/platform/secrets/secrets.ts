// Secrets: API tokens, their hashes, and encryption at rest with SECRETS_KEY.
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hash,
  randomBytes,
  randomInt,
  timingSafeEqual,
} from 'node:crypto'
import { crc32 } from 'node:zlib'

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const tokenPattern = /^brt_[0-9A-Za-z]{36}$/

function checksum(body: string): string {
  let rest = crc32(body)
  let text = ''
  for (let i = 0; i < 6; i++) {
    text = base62[rest % 62] + text
    rest = Math.floor(rest / 62)
  }
  return text
}

/** `brt_`, 30 random base62 characters, and a CRC-32: typos are refused without a query, and secret scanners find leaks. */
export function newToken(): string {
  let body = ''
  for (let i = 0; i < 30; i++) body += base62[randomInt(62)]
  return `brt_${body}${checksum(body)}`
}

/** 256 random bits for a link or a cookie. Only its `hashToken` is stored. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

export function isWellFormedToken(text: string): boolean {
  return tokenPattern.test(text) && checksum(text.slice(4, 34)) === text.slice(34)
}

// A token has 178 random bits, so one plain hash is as strong as a slow one and takes a microsecond.
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/** The rows and columns with sealed values. A value is bound to its place, so a copy in another row can't be opened. */
export const placeOf = {
  /** For all targets. */
  variable: (projectId: string, key: string) => `variable:${projectId}:${key}`,
  /** For both secrets, because the current one becomes the old one. */
  webhook: (id: string) => `webhook:${id}`,
  pushHook: (projectId: string) => `push_hook:${projectId}`,
  statusToken: (projectId: string) => `push_hook.status_token:${projectId}`,
  /** For both kinds. */
  repositoryAccess: (projectId: string) => `repository_access:${projectId}`,
  answer: (tokenId: string, key: string) => `idempotency_key:${tokenId}:${key}`,
  certificate: (id: string) => `certificate:${id}`,
  acmeAccount: (directory: string) => `acme_account:${directory}`,
  acmeOrder: (subject: string) => `acme_order:${subject}`,
  internalCa: (id: string) => `internal_ca:${id}`,
  developmentCa: (id: string) => `development_ca:${id}`,
  totp: (userId: string) => `users.totp_secret:${userId}`,
  dnsKey: (id: string) => `dns_key:${id}`,
  zoneKey: (id: string) => `zone_key:${id}`,
  zonePrimary: (domainId: string) => `zone_primary:${domainId}`,
  /** A file, not a row. */
  snapshot: (what: string) => `snapshot:${what}`,
  canary: (keyId: string) => `sealing_key:${keyId}`,
  /** A file on this machine. */
  file: (name: string) => `file:${name}`,
}

export type Vault = {
  seal(plain: string | Buffer, place: string): Buffer
  /** Throws if the value belongs to another place, was changed, or was sealed with an unknown key. */
  open(sealed: Uint8Array, place: string): Buffer
  /** For links that leave the platform: deterministic per text and purpose, and impossible to forge. */
  sign(text: string, purpose: string): Buffer
  /** Whether we made the signature, with the current key or an old one. */
  verify(signature: Uint8Array, text: string, purpose: string): boolean
  /** The fingerprint of the current key. */
  readonly keyId: string
  /** The first bytes of every value sealed with the current key. */
  readonly header: Buffer
  knows(keyId: string): boolean
  /** How many values couldn't be opened. */
  readonly failures: number
}

const keyIdBytes = 8
const nonceBytes = 12
const tagBytes = 16
// The format of older versions: no key id, and not bound to a place. Still opened, never written.
const unbound = 1
const bound = 2

/** A fingerprint that identifies the key and reveals nothing about it. */
export function keyIdOf(key: Buffer): string {
  return createHmac('sha256', key).update('berth key id').digest().subarray(0, keyIdBytes).toString('hex')
}

function signWith(key: Buffer, text: string, purpose: string): Buffer {
  const own = createHmac('sha256', key).update(`berth signatures ${purpose}`).digest()
  return createHmac('sha256', own).update(text).digest()
}

/** AES-256-GCM. A sealed value is version, key id, nonce, tag, ciphertext. Old keys can still decrypt. */
export function createVault(key: Buffer, oldKeys: Buffer[] = []): Vault {
  const keys = new Map([key, ...oldKeys].map((one) => [keyIdOf(one), one]))
  const keyId = keyIdOf(key)
  const header = Buffer.concat([Buffer.from([bound]), Buffer.from(keyId, 'hex')])
  let failures = 0

  function decrypt(candidate: Buffer, rest: Buffer, place: string | null): Buffer | null {
    try {
      const decipher = createDecipheriv('aes-256-gcm', candidate, rest.subarray(0, nonceBytes), {
        authTagLength: tagBytes,
      })
      decipher.setAuthTag(rest.subarray(nonceBytes, nonceBytes + tagBytes))
      if (place !== null) decipher.setAAD(Buffer.from(place))
      return Buffer.concat([decipher.update(rest.subarray(nonceBytes + tagBytes)), decipher.final()])
    } catch {
      return null
    }
  }

  function refuse(message: string): never {
    failures++
    throw new Error(message)
  }

  return {
    keyId,
    header,
    knows: (id) => keys.has(id),
    get failures() {
      return failures
    },
    sign: (text, purpose) => signWith(key, text, purpose),
    verify: (signature, text, purpose) =>
      [...keys.values()].some((one) => {
        const own = signWith(one, text, purpose)
        return own.length === signature.length && timingSafeEqual(own, signature)
      }),
    seal(plain, place) {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', key, nonce)
      cipher.setAAD(Buffer.from(place))
      const body = Buffer.concat([cipher.update(plain), cipher.final()])
      return Buffer.concat([header, nonce, cipher.getAuthTag(), body])
    },
    open(sealed, place) {
      const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.length)
      if (bytes[0] === unbound) {
        for (const candidate of keys.values()) {
          const plain = decrypt(candidate, bytes.subarray(1), null)
          if (plain) return plain
        }
        return refuse('A stored secret cannot be opened with SECRETS_KEY or SECRETS_KEY_OLD. Was the key changed?')
      }
      const id = bytes.toString('hex', 1, header.length)
      const known = bytes[0] === bound ? keys.get(id) : undefined
      if (!known) return refuse(`A stored secret needs the key ${id}, which SECRETS_KEY and SECRETS_KEY_OLD lack.`)
      const plain = decrypt(known, bytes.subarray(header.length), place)
      return plain ?? refuse(`A stored secret of ${place} was changed, or copied from another row: it does not open.`)
    },
  }
}
