// Keys of signed zones against the example of RFC 6605, and a new key against Node's own reading of it.
import { createPrivateKey, createPublicKey, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { dnskeyRdata, dsRdata, keyTagOf } from '../../../src/dns/dnssec/keys.ts'
import { wireName } from '../../../src/dns/packet/wire-names.ts'
import { createVault, placeOf } from '../../../src/platform/secrets/secrets.ts'
import { createZoneKey } from '../../../src/services/dns/dnssec/zone-keys.ts'

// RFC 6605, section 6.1.
const publicKey = Buffer.from(
  'GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA==',
  'base64',
)

test('the tag and the digest of the key in RFC 6605', () => {
  expect(keyTagOf(dnskeyRdata(publicKey))).toBe(55648)
  expect(dsRdata(wireName('example.net'), dnskeyRdata(publicKey)).toString('hex')).toBe(
    'd9600d02b4c8c1fe2e7477127b27115656ad6256f424625bf5c1e2770ce6d6e37df61d17',
  )
})

test('a new key is sealed for its row, and its public half belongs to the private one', () => {
  const vault = createVault(randomBytes(32))
  const use = { published: true, signing: true, announced: false }
  const row = createZoneKey(vault, null, use)
  expect(row).toMatchObject({ domainId: null, ...use })
  expect(row.publicKey).toHaveLength(64)
  expect(row.tag).toBe(keyTagOf(dnskeyRdata(row.publicKey)))
  const octets = vault.open(row.privateKey, placeOf.zoneKey(row.id))
  const key = createPublicKey(createPrivateKey({ key: octets, format: 'der', type: 'pkcs8' }))
  const { x, y } = key.export({ format: 'jwk' })
  const point = Buffer.concat([Buffer.from(x!, 'base64url'), Buffer.from(y!, 'base64url')])
  expect(point.equals(row.publicKey)).toBe(true)
})
