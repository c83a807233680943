// A passkey in software: device and browser in one, with every part open to forgery.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** The part of CBOR that an attestation needs: integers, text, bytes, and maps. */
function cbor(value: unknown): Buffer {
  const head = (major: number, n: number) =>
    n < 24
      ? Buffer.from([(major << 5) | n])
      : n < 256
        ? Buffer.from([(major << 5) | 24, n])
        : Buffer.from([(major << 5) | 25, n >> 8, n & 255])
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value])
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(cbor)])
  const entries = [...(value as Map<unknown, unknown>)]
  return Buffer.concat([head(5, entries.length), ...entries.flat().map(cbor)])
}

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest()
const text = (bytes: Buffer) => bytes.toString('base64url')

/** What a forger may change. */
export type Lies = {
  challenge?: string
  origin?: string
  rpId?: string
  type?: string
  crossOrigin?: boolean
  /** 1: present, 4: verified. */
  flags?: number
  counter?: number
  userHandle?: string
  format?: string
  statement?: Map<string, unknown>
  /** Signs with another key. */
  key?: KeyObject
}

export class Authenticator {
  readonly id = randomBytes(32)
  readonly keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  counter = 0
  userHandle = ''
  readonly #origin: string

  constructor(origin: string) {
    this.#origin = origin
  }

  #client(type: string, challenge: string, lies: Lies): Buffer {
    const { origin = this.#origin, crossOrigin = false } = lies
    const data = { type: lies.type ?? type, challenge: lies.challenge ?? challenge, origin, crossOrigin }
    return Buffer.from(JSON.stringify(data))
  }

  #data(rpId: string, flags: number, counter: number): Buffer {
    const tail = Buffer.alloc(5)
    tail.writeUInt8(flags)
    tail.writeUInt32BE(counter, 1)
    return Buffer.concat([sha256(rpId), tail])
  }

  /** Responds to the options of a registration. */
  create(options: { challenge: string; rp: { id?: string }; user: { id: string } }, lies: Lies = {}) {
    this.userHandle = options.user.id
    const jwk = this.keys.publicKey.export({ format: 'jwk' })
    const point = (part?: string) => Buffer.from(part!, 'base64url')
    const key = new Map<number, unknown>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, point(jwk.x)],
      [-3, point(jwk.y)],
    ])
    const length = Buffer.from([0, this.id.length])
    const own = Buffer.concat([Buffer.alloc(16), length, this.id, cbor(key)])
    const flags = (lies.flags ?? 5) | 64
    const data = Buffer.concat([this.#data(lies.rpId ?? options.rp.id!, flags, lies.counter ?? this.counter), own])
    const attestation = new Map<string, unknown>([
      ['fmt', lies.format ?? 'none'],
      ['attStmt', lies.statement ?? new Map()],
      ['authData', data],
    ])
    return {
      id: text(this.id),
      rawId: text(this.id),
      type: 'public-key',
      clientExtensionResults: {},
      response: {
        clientDataJSON: text(this.#client('webauthn.create', options.challenge, lies)),
        attestationObject: text(cbor(attestation)),
        transports: ['internal'],
      },
    }
  }

  /** Responds to the options of a sign-in. */
  get(options: { challenge: string; rpId?: string }, lies: Lies = {}) {
    const data = this.#data(lies.rpId ?? options.rpId!, lies.flags ?? 5, lies.counter ?? ++this.counter)
    const client = this.#client('webauthn.get', options.challenge, lies)
    const signature = sign('sha256', Buffer.concat([data, sha256(client)]), lies.key ?? this.keys.privateKey)
    return {
      id: text(this.id),
      rawId: text(this.id),
      type: 'public-key',
      clientExtensionResults: {},
      response: {
        clientDataJSON: text(client),
        authenticatorData: text(data),
        signature: text(signature),
        userHandle: lies.userHandle ?? this.userHandle,
      },
    }
  }
}
