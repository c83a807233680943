// Zones with signatures that no key has made: for tests of what does not look into them.
import { createHash } from 'node:crypto'
import type { SignedZone } from '../../../../src/engines/nameserver/dnssec/chain.ts'
import { setsOf } from '../../../../src/engines/nameserver/dnssec/sets.ts'
import { neededSignatures } from '../../../../src/engines/nameserver/dnssec/signer.ts'
import { packSignatures, signatureOctets } from '../../../../src/engines/nameserver/zones/signing.ts'
import type { ZoneRow, ZoneTable } from '../../../../src/engines/nameserver/zones/zone-table.ts'
import type { ServedSigning } from '../../../../src/services/dns/zones/served-zones.ts'
import { nowhere, parseLines } from '../zones.ts'

export type Denial = ServedSigning['denial']

const publicKey = Buffer.alloc(64, 1).toString('base64')
const key = { id: 'zky_1', tag: 4711, publicKey, published: true, signing: true, announced: true }

/** A zone as it is put into a table. */
export function unreallySigned(table: ZoneTable, name: string, text: string, serial: number, denial: Denial): ZoneRow {
  const records = parseLines(text).map(({ type, ttl, name, value }) => `${type} ${ttl} ${name} ${value}`)
  const state = { name, id: `dom_${name}`, accountId: 'acc_1', serial, verified: true, refused: false }
  const row = { ...state, records: records.join('\n') }
  const signing = { denial, cdsDelete: false, keys: [key] }
  const bare = table.draft({ ...row, signing: { ...signing, signatures: '', chain: null } }) as SignedZone
  const entries = Array.from(neededSignatures(row, signing.keys, setsOf(bare, nowhere)), ({ key, fingerprint }) => {
    const octets = createHash('sha512').update(fingerprint, 'latin1').digest().toString('latin1')
    return [key, octets.padEnd(signatureOctets, 'x')] as const
  })
  return { ...row, signing: { ...signing, signatures: packSignatures(entries), chain: null } }
}
