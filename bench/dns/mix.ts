// The queries that resolvers send for such zones, with the expected answers.
import { writeFile } from 'node:fs/promises'
import { rcodes, type typeNumbers } from '../../src/dns/packet/numbers.ts'
import { zoneName } from './zones.ts'

export type Query = {
  name: string
  type: keyof typeof typeNumbers
  rcode: number
  /** The records in the answer section; with signatures, one more per set. */
  answers: number
  sets: number
}

type Kind = { share: number; label: string; type: Query['type']; rcode?: number; answers: number; sets?: number }

// Percentages. {k} is one of `variants` names without a record of their own.
const kinds: Kind[] = [
  { share: 22, label: '', type: 'A', answers: 1 },
  { share: 12, label: '', type: 'AAAA', answers: 1 },
  { share: 8, label: '', type: 'MX', answers: 1 },
  { share: 6, label: '', type: 'TXT', answers: 1 },
  { share: 3, label: '', type: 'NS', answers: 2 },
  { share: 2, label: '', type: 'SOA', answers: 1 },
  { share: 1, label: '', type: 'CAA', answers: 1 },
  { share: 14, label: 'www.', type: 'A', answers: 2, sets: 2 },
  { share: 6, label: 'api.', type: 'A', answers: 2 },
  { share: 4, label: 'mail.', type: 'A', answers: 1 },
  { share: 5, label: 'mail.', type: 'AAAA', answers: 0 },
  { share: 3, label: 'api.', type: 'TXT', answers: 0 },
  { share: 7, label: 'app-{k}.apps.', type: 'A', answers: 1 },
  { share: 7, label: 'missing-{k}.', type: 'A', rcode: rcodes.NXDOMAIN, answers: 0 },
]
const variants = 20

/** Reproducible random numbers below 1. */
export function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export function makeMix(count: number, zones: number, seed: number): Query[] {
  const random = randomNumbers(seed)
  const dice = kinds.flatMap((kind) => new Array<Kind>(kind.share).fill(kind))
  return Array.from({ length: count }, () => {
    const { label, type, rcode = rcodes.NOERROR, answers, sets } = dice[Math.floor(random() * dice.length)]!
    const zone = zoneName(1 + Math.floor(random() * zones))
    const variant = String(Math.floor(random() * variants))
    return { name: label.replace('{k}', variant) + zone, type, rcode, answers, sets: sets ?? Math.min(answers, 1) }
  })
}

export const floods = {
  'names that do not exist': { label: '', rcode: rcodes.NXDOMAIN, answers: 0 },
  'names of a wildcard': { label: 'apps.', rcode: rcodes.NOERROR, answers: 1 },
} as const

/** A different name for each query, none with a record of its own. */
export function makeFlood(kind: keyof typeof floods, count: number, zones: number): Query[] {
  const random = randomNumbers(5)
  const { label, rcode, answers } = floods[kind]
  return Array.from({ length: count }, (_, number) => {
    const zone = zoneName(1 + Math.floor(random() * zones))
    const own = Math.floor(random() * 2 ** 32).toString(36) + number.toString(36)
    return { name: `${own}.${label}${zone}`, type: 'A', rcode, answers, sets: answers }
  })
}

/** In dnsperf's format. */
export async function writeMix(file: string, mix: Query[]): Promise<void> {
  await writeFile(file, mix.map(({ name, type }) => `${name} ${type}\n`).join(''))
}
