// The records that signing adds to a zone: at its apex its keys, and what the parent is asked to have of them; and marks.
import { cdnskeyDelete, cdsDelete, nsec3ParamRdata } from '../../../dns/dnssec/denial.ts'
import { foreignRdata, isEntryPoint } from '../../../dns/dnssec/foreign-keys.ts'
import { dnskeyRdata, dsRdata } from '../../../dns/dnssec/keys.ts'
import { typeNumbers } from '../../../dns/packet/numbers.ts'
import type { ServedSigning } from '../../../services/dns/index.ts'
import type { Rdata } from './rdata.ts'

const none = Buffer.alloc(0)
export const octetsRdata = (head: Buffer): Rdata => ({ head, names: [], tail: none })

export type ApexSet = { type: number; ttl: number; rdatas: Rdata[] }

/** Records of these types belong to the service in a signed zone. */
export const ownedApexTypes: ReadonlySet<number> = new Set([typeNumbers.CDS, typeNumbers.CDNSKEY])

/**
 * With the keys of another provider that signs the zone too: they are among those that we sign, and the parent is asked to
 * keep their DS, even where it is asked to remove ours.
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

/** Of the marks of ALIAS records: for private use; elsewhere it is the type of such records. */
export const markType = 65_401

type Marked = {
  sets: Readonly<Omit<ApexSet, 'rdatas'> & { rdatas: readonly Rdata[] }>[]
  alias: { ttl: number } | null
}

/**
 * Has a name with an ALIAS exist where its zone is transferred to, even while the ALIAS has no address: in the chain of
 * NSEC3 it is there, and a secondary, to which a name without records does not exist, could not prove its answer.
 */
export function markAlias({ sets, alias }: Marked): void {
  if (!alias || sets.some(({ type }) => type === markType)) return
  sets.push({ type: markType, ttl: alias.ttl, rdatas: [octetsRdata(none)] })
}
