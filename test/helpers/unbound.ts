// Seals values like the previous version.
import { createCipheriv, randomBytes } from 'node:crypto'

/** Without a key ID, and not bound to a column. */
export function sealUnbound(key: Buffer, plain: string): Buffer<ArrayBuffer> {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  const body = Buffer.concat([cipher.update(plain), cipher.final()])
  return Buffer.concat([Buffer.from([1]), nonce, cipher.getAuthTag(), body])
}
