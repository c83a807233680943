// Ids: a prefix, an underscore, and 24 base32 characters that sort by creation time.
import { randomBytes } from 'node:crypto'

// Digits before letters, so that text order is creation order; without i, l, o and u, which are easily misread.
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

export type IdPrefix =
  | 'acc'
  | 'prj'
  | 'dpl'
  | 'dom'
  | 'rec'
  | 'tkt'
  | 'msg'
  | 'tok'
  | 'whk'
  | 'dlv'
  | 'evt'
  | 'crt'
  | 'chl'
  | 'tkd'
  | 'nod'
  | 'usr'
  | 'mem'
  | 'inv'
  | 'ses'
  | 'psk'
  | 'key'
  | 'zky'
  | 'dhk'
  | 'crn'
  | 'crr'

// Ids keep growing while the clock is set back by less than this. Beyond that, the clock was wrong before.
const maxBackMs = 60_000

let lastMs = 0
let counter = 0
let pool = Buffer.alloc(0)
let poolOffset = 0

// One system call per 400 ids instead of one each.
function randomByte(): number {
  if (poolOffset === pool.length) {
    pool = randomBytes(4096)
    poolOffset = 0
  }
  return pool[poolOffset++]!
}

function timeText(ms: number): string {
  let text = ''
  for (let i = 0; i < 10; i++) {
    text = alphabet[ms % 32] + text
    ms = Math.floor(ms / 32)
  }
  return text
}

/** 48 bits of time, 20 bits that grow within a millisecond, 50 random bits. */
export function newId(prefix: IdPrefix): string {
  const now = Date.now()
  if (now > lastMs || now < lastMs - maxBackMs) {
    lastMs = now
    // Starting low leaves room to count; starting at random keeps two processes from colliding in one millisecond.
    counter = ((randomByte() << 8) | randomByte()) & 0xffff
  } else if (++counter > 0xfffff) {
    lastMs++
    counter = 0
  }
  let text = timeText(lastMs)
  for (let shift = 15; shift >= 0; shift -= 5) text += alphabet[(counter >> shift) & 31]
  for (let i = 0; i < 10; i++) text += alphabet[randomByte() & 31]
  return `${prefix}_${text}`
}

/** Sorts before all ids created at `time` or later, and after all earlier ones. */
export function idAt(prefix: IdPrefix, time: Date): string {
  return `${prefix}_${timeText(time.getTime())}`
}

/** The creation time of an id. Lists that are limited by time show this time, because their limits apply to ids. */
export function timeOf(id: string): Date {
  const digits = id.slice(id.indexOf('_') + 1).slice(0, 10)
  return new Date([...digits].reduce((ms, digit) => ms * 32 + alphabet.indexOf(digit), 0))
}

/** Random letters and digits for the public part of a host name. */
export function randomLabel(length: number): string {
  let text = ''
  for (let i = 0; i < length; i++) text += alphabet[randomByte() & 31]
  return text
}
