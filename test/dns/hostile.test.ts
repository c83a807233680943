// Hostile input: every reader answers it with a refusal, in linear time, and never throws.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hostTarget, relativeName } from '../../src/dns/names.ts'
import { parseRdata } from '../../src/dns/rdata/rdata.ts'
import { svcbParams } from '../../src/dns/rdata/svcb.ts'
import { txtStrings } from '../../src/dns/rdata/txt.ts'
import { recordTypes } from '../../src/dns/record-types.ts'
import { readZoneFile } from '../../src/dns/zone-files/zone-file-reader.ts'
import { anyCharacter } from '../helpers/characters.ts'
import { valuesToTry } from '../helpers/seed.ts'
import { counted, takesLinearSteps } from '../helpers/steps/steps.ts'
import { zone } from './zone-arbitraries.ts'

const counting = {
  ...(await counted<typeof import('../../src/dns/names.ts')>('src/dns/names.ts')),
  ...(await counted<typeof import('../../src/dns/rdata/rdata.ts')>('src/dns/rdata/rdata.ts')),
  ...(await counted<typeof import('../../src/dns/zone-files/zone-file-reader.ts')>(
    'src/dns/zone-files/zone-file-reader.ts',
  )),
}

const fragments = fc.constantFrom(
  ...['"', '\\', '\\1', '\\999', ';', '(', ')', ' ', '\t', '\n', '\r', '\0', '.', '@', '*', ',', '=', '%', '\\#', '$'],
  ...[
    'alpn=',
    'mandatory=',
    'key65535',
    'ipv6hint=',
    '__proto__',
    '1 ',
    '0 ',
    '::',
    'ffff',
    '\ud800',
    '\udc00',
    'é',
    '。',
  ],
  ...['$ORIGIN ', '$TTL ', ';@berth ', 'IN ', 'TXT ', 'HTTPS ', 'A ', '65536', '4294967296', 'xn--', 'a', '\ufeff'],
)
const hostile = fc.oneof(
  fc.array(fragments, { maxLength: 40 }).map((parts) => parts.join('')),
  fc.string({ unit: anyCharacter, maxLength: 100 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 60 }).map((codes) => String.fromCharCode(...codes)),
)

describe('hostile text', () => {
  it('never makes a value reader throw, and what it accepts is one line of printable ASCII', () => {
    fc.assert(
      fc.property(fc.constantFrom(...recordTypes), hostile, (type, text) => {
        const result = parseRdata(type, text, zone)
        if (result.ok) expect(result.value).toMatch(/^[\x20-\x7e]+$/)
        else expect(result.detail).toMatch(/^[^\p{Cc}]{10,500}$/u)
        txtStrings(text)
        svcbParams(text)
      }),
      { numRuns: valuesToTry(5000) },
    )
  })

  it('never makes a name reader throw, and what it accepts is canonical', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const name = relativeName(text, zone)
        if (name.ok) expect(relativeName(name.value, zone)).toEqual(name)
        const target = hostTarget(text, zone)
        if (target.ok) expect(hostTarget(target.value, zone)).toEqual(target)
      }),
      { numRuns: valuesToTry(5000) },
    )
  })

  it('never makes the zone-file reader throw', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        for (const { name, type, value } of readZoneFile(text, zone).records) {
          expect(relativeName(name, zone)).toEqual({ ok: true, value: name })
          expect(parseRdata(type, value, zone)).toEqual({ ok: true, value })
        }
      }),
      { numRuns: valuesToTry(5000) },
    )
  })

  for (const unit of ['"', '\\', '(', ' ', 'a', 'a.', '"" ', '1:', ',', 'ab ', '\\000', ';', 'a=', '\n ']) {
    it(`of ${JSON.stringify(unit)} without end takes linear steps`, async () => {
      await takesLinearSteps(512, (size) => {
        const value = unit.repeat(size / unit.length)
        counting.relativeName(value, zone)
        counting.hostTarget(value, zone)
        counting.parseRdata('HTTPS', `1 . alpn=${value.slice(0, size / 3.3)}`, zone)
        for (const type of recordTypes) {
          counting.parseRdata(type, value, zone)
          counting.parseRdata(type, value.slice(0, size / 3.3), zone)
          counting.readZoneFile(`a ${type} 1 1 1 ${value.slice(0, size / 2)}`, zone)
        }
      })
      await takesLinearSteps(4_096, (size) => {
        const file = unit.repeat(size / unit.length)
        counting.readZoneFile(file, zone)
        counting.readZoneFile(`a TXT ${file}`, zone)
      })
    })
  }

  it('of many small records is read in linear steps', async () => {
    const read = (size: number) =>
      counting.readZoneFile(Array.from({ length: size }, (_, index) => `h${index} A 192.0.2.1`).join('\n'), zone)
    expect(read(4_000).records.length).toBe(4_000)
    await takesLinearSteps(500, read)
  })
})
