// Secrets: API tokens, their hashes, and encryption at rest with SECRETS_KEY.
import { createCipheriv, createDecipheriv, hash, randomBytes, randomInt } from 'node:crypto'
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

/** `brt_`, 30 random base62 characters, 6 of CRC-32: typos are refused without a look-up, scanners find leaks. */
export function newToken(): string {
  let body = ''
  for (let i = 0; i < 30; i++) body += base62[randomInt(62)]
  return `brt_${body}${checksum(body)}`
}

export function isWellFormedToken(text: string): boolean {
  return tokenPattern.test(text) && checksum(text.slice(4, 34)) === text.slice(34)
}

// A token has 178 random bits, so one plain hash is as strong as a slow one and costs a microsecond.
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

export type Vault = { seal(plain: string | Buffer): Buffer; open(sealed: Uint8Array): Buffer }

/** AES-256-GCM; a sealed value is version, nonce, tag, ciphertext. Old keys can still decrypt. */
export function createVault(key: Buffer, oldKeys: Buffer[] = []): Vault {
  const keys = [key, ...oldKeys]
  return {
    seal(plain) {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, nonce)
      const body = Buffer.concat([cipher.update(plain), cipher.final()])
      return Buffer.concat([Buffer.from([1]), nonce, cipher.getAuthTag(), body])
    },
    open(sealed) {
      const bytes = Buffer.from(sealed)
      for (const candidate of keys) {
        try {
          const decipher = createDecipheriv('aes-256-gcm', candidate, bytes.subarray(1, 13))
          decipher.setAuthTag(bytes.subarray(13, 29))
          return Buffer.concat([decipher.update(bytes.subarray(29)), decipher.final()])
        } catch {
          // Encrypted with another key: the next one is tried.
        }
      }
      throw new Error('A stored secret cannot be opened with SECRETS_KEY. Was the key changed?')
    },
  }
}
