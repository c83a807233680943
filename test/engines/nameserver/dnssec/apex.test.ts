// What a zone shows of its keys, and what it asks the parent to have, alone and beside another provider that signs it too.
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { dsTextOfRdata } from '../../../../src/dns/dnssec/ds-texts.ts'
import { foreignRdata, viewForeignKey } from '../../../../src/dns/dnssec/foreign-keys.ts'
import { dnskeyRdata, keyTagOf } from '../../../../src/dns/dnssec/keys.ts'
import { typeNumbers } from '../../../../src/dns/packet/numbers.ts'
import { wireName } from '../../../../src/dns/packet/wire-names.ts'
import { apexSets } from '../../../../src/engines/nameserver/zones/apex.ts'

const zone = 'example.com'
const publicKey = randomBytes(64)
const tag = keyTagOf(dnskeyRdata(publicKey))
const key = { id: 'zky_1', tag, publicKey: publicKey.toString('base64'), published: true, signing: true }
const entryPoint = `257 3 15 ${randomBytes(32).toString('base64')}`
const foreignKeys = [entryPoint, `256 3 15 ${randomBytes(32).toString('base64')}`]

function shown({ announced = true, cdsDelete = false, foreignKeys = [] as string[] }) {
  const signing = { denial: 'nsec' as const, cdsDelete, foreignKeys, keys: [{ ...key, announced }] }
  const sets = apexSets(wireName(zone), signing, 3_600)
  const heads = (type: number) => sets.find((one) => one.type === type)?.rdatas.map(({ head }) => head) ?? []
  return {
    keys: heads(typeNumbers.DNSKEY).map(keyTagOf),
    cds: heads(typeNumbers.CDS).map(dsTextOfRdata),
    cdnskey: heads(typeNumbers.CDNSKEY).length,
  }
}
const ours = expect.stringMatching(new RegExp(`^${tag} 13 2 `))
const theirs = viewForeignKey(zone, entryPoint).ds

describe('the apex of a signed zone', () => {
  test('has the keys of another provider, and asks for the DS of those for keys', () => {
    const all = [tag, ...foreignKeys.map((one) => keyTagOf(foreignRdata(one)))]
    expect(shown({ foreignKeys })).toEqual({ keys: all, cds: [ours, theirs], cdnskey: 2 })
    expect(shown({})).toEqual({ keys: [tag], cds: [ours], cdnskey: 1 })
  })

  test('asks for nothing before a key of ours is announced', () => {
    expect(shown({ foreignKeys, announced: false })).toMatchObject({ cds: [], cdnskey: 0 })
  })

  test('when its signing ends, asks to remove every DS, or all but that of the other provider', () => {
    expect(shown({ cdsDelete: true })).toMatchObject({ cds: ['0 0 0 00'], cdnskey: 1 })
    expect(shown({ cdsDelete: true, foreignKeys })).toMatchObject({ cds: [theirs], cdnskey: 1 })
    expect(shown({ cdsDelete: true, foreignKeys: foreignKeys.slice(1) }).cds).toEqual(['0 0 0 00'])
  })
})
