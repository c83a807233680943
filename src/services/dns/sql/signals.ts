// DNSSEC bootstrapping (RFC 9615): CDS and CDNSKEY records below the names of a zone's nameservers, in the platform's
// own signed zone, from which a parent can take the zone's first DS automatically.
import { dsTextOf } from '../../../dns/dnssec/ds-texts.ts'
import { keyFlags, signingAlgorithm } from '../../../dns/dnssec/keys.ts'
import { nameserversOf } from '../../domains/index.ts'

/** A zone that waits for its first DS; public keys are base64. */
export type Signal = {
  name: string
  nameservers: readonly string[]
  keys: readonly { tag: number; publicKey: string }[]
}

// Short, because they are useless once the DS exists.
const signalTtl = 300
const maxNameCharacters = 253

/** The signals in a zone. Omits those without all nameserver names in the zone, since parents require all of them. */
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
