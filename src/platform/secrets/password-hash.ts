// Slow password hashes: argon2id, or scrypt if Node has no argon2. Computed off the event loop, with limited concurrency.
import * as crypto from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Fault } from '../errors.ts'

// From OWASP's password storage cheat sheet: 19 MiB and two passes, or 128 MiB for scrypt.
const argon2 = { m: 19_456, t: 2, p: 1 }
const scrypt = { ln: 17, r: 8, p: 1 }
const saltBytes = 16
const hashBytes = 32

// Half of the processors, and half of Node's threads, so that the API keeps working during a flood.
const maxAtOnce = Math.max(1, Math.min(2, Math.floor(availableParallelism() / 2)))
// Some seconds of work. Later requests are refused, because waiting would be pointless.
const maxWaiting = 32

type Kind = 'argon2id' | 'scrypt'
type Parameters = Record<string, number>
type PasswordHash = { kind: Kind; parameters: Parameters; salt: Buffer; hash: Buffer }

const hasArgon2 = typeof crypto.argon2 === 'function'
const current: { kind: Kind; parameters: Parameters } = hasArgon2
  ? { kind: 'argon2id', parameters: argon2 }
  : { kind: 'scrypt', parameters: scrypt }

function derive(kind: Kind, password: string, salt: Buffer, parameters: Parameters): Promise<Buffer> {
  // Another keyboard may produce other code points for the same password.
  const message = Buffer.from(password.normalize('NFKC'))
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const done = (error: Error | null, hash: Buffer) => (error ? reject(error) : resolve(hash))
  if (kind === 'argon2id') {
    const { m, t, p } = parameters as typeof argon2
    crypto.argon2(kind, { message, nonce: salt, memory: m, passes: t, parallelism: p, tagLength: hashBytes }, done)
  } else {
    const { ln, r, p } = parameters as typeof scrypt
    crypto.scrypt(message, salt, hashBytes, { N: 2 ** ln, r, p, maxmem: 256 * r * 2 ** ln }, done)
  }
  return promise
}

const encode = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')

/** A PHC string: `$kind$parameters$salt$hash`. For argon2id it also has the version. */
function format({ kind, parameters, salt, hash }: PasswordHash): string {
  const named = Object.entries(parameters).map(([name, value]) => `${name}=${value}`)
  return ['', kind, ...(kind === 'argon2id' ? ['v=19'] : []), named.join(','), encode(salt), encode(hash)].join('$')
}

function parse(text: string): PasswordHash {
  const found = /^\$(argon2id\$v=19|scrypt)\$([a-z]+=\d+(?:,[a-z]+=\d+)*)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(
    text,
  )
  if (!found) throw new Error('a password hash is of no known form')
  const [, kind, named, salt, hash] = found as unknown as [string, string, string, string, string]
  return {
    kind: kind === 'scrypt' ? kind : 'argon2id',
    parameters: Object.fromEntries(named.split(',').map((one) => [one.split('=')[0], Number(one.split('=')[1])])),
    salt: Buffer.from(salt, 'base64'),
    hash: Buffer.from(hash, 'base64'),
  }
}

/** Limits concurrency, and refuses work when too much is waiting. Urgent work goes first and is never refused. */
function createQueue(atOnce: number, maxQueued: number) {
  const waiting: (() => void)[] = []
  let running = 0
  return async function run<T>(work: () => Promise<T>, urgent = false): Promise<T> {
    if (running >= atOnce) {
      if (!urgent && waiting.length >= maxQueued) throw new Fault('overloaded', undefined, { retryAfterSeconds: 5 })
      await new Promise<void>((resolve) => (urgent ? waiting.unshift(resolve) : waiting.push(resolve)))
    } else running++
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }
}

export type PasswordHasher = {
  hash(password: string): Promise<string>
  /** Without a hash it does the same work and returns false, so that timing doesn't reveal whether there is one. */
  verify(password: string, hash: string | null, urgent?: boolean): Promise<boolean>
  /** Whether the hash uses other parameters than new hashes. */
  isOutdated(hash: string): boolean
}

export function createPasswordHasher({ atOnce = maxAtOnce, waiting = maxWaiting, use = current } = {}): PasswordHasher {
  const run = createQueue(atOnce, waiting)
  const dummy: PasswordHash = { ...use, salt: crypto.randomBytes(saltBytes), hash: crypto.randomBytes(hashBytes) }
  return {
    async hash(password) {
      const salt = crypto.randomBytes(saltBytes)
      return format({ ...use, salt, hash: await run(() => derive(use.kind, password, salt, use.parameters)) })
    },
    async verify(password, stored, urgent) {
      const { kind, parameters, salt, hash } = stored === null ? dummy : parse(stored)
      const found = await run(() => derive(kind, password, salt, parameters), urgent)
      return crypto.timingSafeEqual(found, hash) && stored !== null
    },
    isOutdated(stored) {
      const { kind, parameters } = parse(stored)
      return format({ ...dummy, kind, parameters }) !== format(dummy)
    },
  }
}
