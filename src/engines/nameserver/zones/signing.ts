// How a version of a zone is signed, and its signatures as stored in memory.
import type { ServedSigning } from '../../../services/dns/index.ts'
import { NameMap } from './name-map.ts'
import type { SortedTexts } from './sorted-texts.ts'

/**
 * Signatures by key and fingerprint of the set: one string for most zones, a third of the size of a map; a map for large
 * zones.
 */
export type Signatures = string | NameMap<string>

/** What may differ between two versions of a large zone. */
export type ChangeScope = {
  /** The serial of the previous version. */
  readonly from: number
  /** Names whose records may differ, in either version. */
  readonly owners: readonly string[]
  /** Entries of the previous and the new chain that may have other sets, or another neighbour. */
  readonly before: readonly string[]
  readonly after: readonly string[]
}

export type ZoneSigning = ServedSigning & {
  readonly signatures: Signatures
  /** The chain of a large zone; null if it is derived from the built zone. */
  readonly chain: SortedTexts | null
  /** How this version of a large zone differs from the previous one; missing if it was created as a whole. */
  readonly scope?: ChangeScope
}

/** Whether the signatures of one are also valid for the other. */
export function isSameSigning(one: ServedSigning, other: ServedSigning): boolean {
  const signers = ({ keys }: ServedSigning) => keys.flatMap(({ id, signing }) => (signing ? [id] : [])).join()
  return one.denial === other.denial && signers(one) === signers(other)
}

export type FoundSignatures = { get(key: string): string | undefined }

const fingerprintOctets = 20
const keyOctets = 1 + fingerprintOctets
/** Inception, expiry, signature. */
export const signatureOctets = 4 + 4 + 64
const entryOctets = keyOctets + signatureOctets

/** `index` is that of the key among the signing keys. */
export const signatureKey = (index: number, fingerprint: string) => String.fromCharCode(index) + fingerprint

export function packSignatures(entries: Iterable<readonly [key: string, octets: string]>): string {
  let packed = ''
  for (const [key, octets] of entries) packed += key + octets
  // One flat string instead of a tree of parts.
  return Buffer.from(packed, 'latin1').toString('latin1')
}

export function* entriesOf(signatures: Signatures): Generator<[key: string, octets: string]> {
  if (typeof signatures !== 'string') yield* signatures
  else {
    for (let at = 0; at < signatures.length; at += entryOctets) {
      yield [signatures.slice(at, at + keyOctets), signatures.slice(at + keyOctets, at + entryOctets)]
    }
  }
}

// Above this, searching the string for each signature takes longer than splitting it once.
const fewEntries = 64

/** A short string is searched, because a map would be several times its size. */
export function openSignatures(signatures: Signatures): FoundSignatures {
  if (typeof signatures !== 'string') return signatures
  if (signatures.length > fewEntries * entryOctets) return takenApart(signatures)
  return {
    get(key) {
      let at = signatures.indexOf(key)
      while (at % entryOctets > 0) at = signatures.indexOf(key, at + 1)
      return at < 0 ? undefined : signatures.slice(at + keyOctets, at + entryOctets)
    },
  }
}

/** Splits on demand, because many versions are never queried. */
function takenApart(signatures: string): FoundSignatures {
  let found: Map<string, string> | null = null
  return {
    get(key) {
      found ??= new Map(entriesOf(signatures))
      return found.get(key)
    },
  }
}

export function mapOf(entries: Iterable<readonly [string, string]>): NameMap<string> {
  const draft = new NameMap<string>().edit()
  for (const [key, octets] of entries) draft.set(key, octets)
  return draft.done()
}
