// Rows of zones as saved for a start without the database; each row of a signed zone has a part of its signatures.
import type { ServedSigning, ServedZoneRow } from '../../../services/dns/index.ts'
import { entriesOf, packSignatures, type ZoneSigning } from './signing.ts'

/** A saved row; signatures are in base64. */
export type SavedRow = Omit<ServedZoneRow, 'signing'> & {
  signing?: (ServedSigning & { signatures: string }) | null
}

type State = Omit<SavedRow, 'records' | 'signing'>

// Some 100 KB of text.
const signaturesInARow = 1_000

/** The rows of a signed zone: as many as its texts and signatures need. */
export function* signedRows(state: State, texts: Iterable<string>, signing: ZoneSigning): Generator<SavedRow> {
  const { signatures, chain: _made, scope: _changed, ...how } = signing
  const entries = entriesOf(signatures)
  const lines = texts[Symbol.iterator]()
  for (;;) {
    const text = lines.next()
    const some: [string, string][] = []
    while (some.length < signaturesInARow) {
      const entry = entries.next()
      if (entry.done) break
      some.push(entry.value)
    }
    if (text.done && some.length === 0) return
    const packed = Buffer.from(packSignatures(some), 'latin1').toString('base64')
    yield { ...state, records: text.done ? '' : text.value, signing: { ...how, signatures: packed } }
  }
}

/** Joins the signatures of a zone from its rows. The chain of a large zone is built on first use. */
export function joinedSigning(signing: ServedSigning, rows: readonly SavedRow[]): ZoneSigning {
  const parts = rows.map((row) => Buffer.from(row.signing?.signatures ?? '', 'base64'))
  return { ...signing, signatures: Buffer.concat(parts).toString('latin1'), chain: null }
}
