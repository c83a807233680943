// Keys that sign zones (DNSSEC).
import { generateKeyPairSync } from 'node:crypto'
import { dnskeyRdata, keyTagOf } from '../../../dns/dnssec/keys.ts'
import type { ZoneKey } from '../../../generated/client.ts'
import { newId } from '../../../platform/ids.ts'
import { placeOf, type Vault } from '../../../platform/secrets/secrets.ts'

export type ZoneKeyUse = Pick<ZoneKey, 'published' | 'signing' | 'announced'>

/** Creates the data of a new zone_key row; without a domain, for the platform's own zone. */
export function createZoneKey(vault: Vault, domainId: string | null, use: ZoneKeyUse) {
  const id = newId('zky')
  const { publicKey: point, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x, y } = point.export({ format: 'jwk' })
  const publicKey = Buffer.concat([Buffer.from(x!, 'base64url'), Buffer.from(y!, 'base64url')])
  const octets = privateKey.export({ format: 'der', type: 'pkcs8' })
  return {
    id,
    domainId,
    tag: keyTagOf(dnskeyRdata(publicKey)),
    publicKey: Uint8Array.from(publicKey),
    privateKey: Uint8Array.from(vault.seal(octets, placeOf.zoneKey(id))),
    ...use,
    createdAt: new Date(),
  }
}
