// The records that signing adds to a zone: keys, CDS and CDNSKEY records at its apex, and marks for ALIAS records.
import { cdnskeyDelete, cdsDelete, nsec3ParamRdata } from '../../../dns/dnssec/denial.ts'
import { foreignRdata, isEntryPoint } from '../../../dns/dnssec/foreign-keys.ts'
import { dnskeyRdata, dsRdata } from '../../../dns/dnssec/keys.ts'
import { typeNumbers } from '../../../dns/packet/numbers.ts'
import type { ServedSigning } from '../../../services/dns/index.ts'
import type { Rdata } from './rdata.ts'

const none = Buffer.alloc(0)
export const octetsRdata = (head: Buffer): Rdata => ({ head, names: [], tail: none })

export type ApexSet = { type: number; ttl: number; rdatas: Rdata[] }

/** In a signed zone, the platform manages records of these types. */
export const ownedApexTypes: ReadonlySet<number> = new Set([typeNumbers.CDS, typeNumbers.CDNSKEY])

/**
 * Includes the keys of another provider that also signs the zone: we sign them with ours, and ask the parent to keep their
 * DS records, even if it should remove ours.
 */
export function apexSets(origin: string, signing: ServedSigning, ttl: number): ApexSet[] {
  const rdataOf = (key: ServedSigning['keys'][number]) => dnskeyRdata(Buffer.from(key.publicKey, 'base64'))
  const foreign = (signing.foreignKeys ?? []).map(foreignRdata)
  const announced = signing.keys.filter((key) => key.announced && !signing.cdsDelete).map(rdataOf)
  const isAsked = signing.cdsDelete || announced.length > 0
  const cdnskey = isAsked ? [...announced, ...foreign.filter(isEntryPoint)] : []
  const cds = cdnskey.map((dnskey) => dsRdata(origin, dnskey))
  const dnskey = [...signing.keys.filter((key) => key.published).map(rdataOf), ...foreign]
  const isDelete = signing.cdsDelete && cds.length === 0
  const sets: [type: number, ttl: number, octets: Buffer[]][] = [
    [typeNumbers.DNSKEY, ttl, dnskey],
    [typeNumbers.CDS, ttl, isDelete ? [cdsDelete()] : cds],
    [typeNumbers.CDNSKEY, ttl, isDelete ? [cdnskeyDelete()] : cdnskey],
    [typeNumbers.NSEC3PARAM, 0, signing.denial === 'nsec3' ? [nsec3ParamRdata()] : []],
  ]
  return sets.flatMap(([type, ttl, octets]) =>
    octets.length === 0 ? [] : [{ type, ttl, rdatas: octets.map(octetsRdata) }],
  )
}

/** The type of the marks of ALIAS records: for private use, although other software uses it for such records. */
export const markType = 65_401

type Marked = {
  sets: Readonly<Omit<ApexSet, 'rdatas'> & { rdatas: readonly Rdata[] }>[]
  alias: { ttl: number } | null
}

/**
 * Makes a name with an ALIAS exist at secondaries, even while the ALIAS has no address. The name is in the NSEC3 chain, and
 * a secondary for which it has no records, and so doesn't exist, couldn't prove its answer.
 */
export function markAlias({ sets, alias }: Marked): void {
  if (!alias || sets.some(({ type }) => type === markType)) return
  sets.push({ type: markType, ttl: alias.ttl, rdatas: [octetsRdata(none)] })
}
