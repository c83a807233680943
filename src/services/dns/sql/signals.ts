// Signals that have a parent take the first DS of a zone by itself (RFC 9615): its CDS and CDNSKEY records below the names of
// its nameservers, in the platform's own signed zone.
import { dsTextOf } from '../../../dns/dnssec/ds-texts.ts'
import { keyFlags, signingAlgorithm } from '../../../dns/dnssec/keys.ts'
import { nameserversOf } from '../../domains/index.ts'

/** A zone that waits for its first DS; public keys are in base64. */
export type Signal = {
  name: string
  nameservers: readonly string[]
  keys: readonly { tag: number; publicKey: string }[]
}

// Parents look for them from time to time, and they are of no use once the DS is there.
const signalTtl = 300
const maxNameCharacters = 253

/** The lines of these signals in a zone; none where not every nameserver's name is in it, since a parent wants all. */
export function signalLines(zone: string, pool: readonly string[], signals: readonly Signal[]): string[] {
  return signals.flatMap(({ name, nameservers, keys }) => {
    const owners = nameserversOf(pool, nameservers).map((host) => `_dsboot.${name}._signal.${host.toLowerCase()}`)
    const isHere = (owner: string) => owner.endsWith(`.${zone}`) && owner.length <= maxNameCharacters
    if (!owners.every(isHere)) return []
    return owners.flatMap((owner) => {
      const relative = owner.slice(0, -zone.length - 1)
      return keys.flatMap(({ tag, publicKey }) => [
        `CDS ${signalTtl} ${relative} ${dsTextOf(name, { tag, publicKey: Buffer.from(publicKey, 'base64') })}`,
        `CDNSKEY ${signalTtl} ${relative} ${keyFlags} 3 ${signingAlgorithm} ${publicKey}`,
      ])
    })
  })
}
