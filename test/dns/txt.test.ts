// TXT values: one text without quotes, strings with them, split for the wire.
import { describe, expect, it } from 'vitest'
import { parseRdata } from '../../src/dns/rdata/rdata.ts'
import { txtStrings } from '../../src/dns/rdata/txt.ts'

const zone = 'example.com'
const txt = (value: string) => parseRdata('TXT', value, zone)

describe('a TXT value', () => {
  for (const [about, value, canonical] of [
    ['takes text without quotes as one string, blanks included', 'v=spf1  include:x ~all', '"v=spf1  include:x ~all"'],
    ['keeps a semicolon and quotes inside unquoted text', 'p=none; say "hi"', '"p=none; say \\"hi\\""'],
    ['takes a lone backslash in unquoted text literally', 'a\\b', '"a\\\\b"'],
    ['takes quoted strings as they are cut', '"one" "two"', '"one" "two"'],
    ['takes adjacent quoted strings', '"one""two"', '"one" "two"'],
    ['undoes escapes in quotes', '"\\097\\"\\\\\\;"', '"a\\"\\\\;"'],
    ['writes other octets as escapes', '"\\000\\255é"', '"\\000\\255\\195\\169"'],
    ['writes a character beyond the basic plane as its four octets', '"\\🚀"', '"\\240\\159\\154\\128"'],
    ['may be one empty string', '""', '""'],
    ['loses blanks around it', '  x ', '"x"'],
  ] as const) {
    it(about, () => expect(txt(value)).toEqual({ ok: true, value: canonical }))
  }

  it('over 255 octets is split for the wire, not by the user', () => {
    const text = 'k'.repeat(600)
    const canonical = `"${'k'.repeat(255)}" "${'k'.repeat(255)}" "${'k'.repeat(90)}"`
    expect(txt(text)).toEqual({ ok: true, value: canonical })
    expect(txt(`"${text}"`)).toEqual({ ok: true, value: canonical })
    expect(txtStrings(canonical).map((string) => string.length)).toEqual([255, 255, 90])
    expect(Buffer.concat(txtStrings(canonical)).toString()).toBe(text)
  })

  it('is split by octets, not by characters', () => {
    const result = txt('é'.repeat(200))
    expect(result.ok).toBe(true)
    if (result.ok) expect(txtStrings(result.value).map((string) => string.length)).toEqual([255, 145])
  })

  it('holds at most 4,096 octets with the length of each string', () => {
    expect(txt('x'.repeat(4080)).ok).toBe(true)
    expect(txt('x'.repeat(4081)).ok).toBe(false)
    expect(txt(`"${'\\000'.repeat(4080)}"`).ok).toBe(true)
    expect(txt('"" '.repeat(4096).trim()).ok).toBe(true)
    expect(txt('"" '.repeat(4097).trim()).ok).toBe(false)
  })

  for (const [about, value] of [
    ['an open quote', '"abc'],
    ['text after a closing quote', '"abc" def'],
    ['an escape past 255', '"\\256"'],
    ['an escape of two digits', '"\\12"'],
    ['a backslash at the end', '"abc\\'],
    ['escapes without quotes, which would be published literally', 'v=DKIM1\\; k=rsa'],
    ['a line break', 'a\nb'],
    ['a NUL', 'a\0b'],
    ['half a surrogate pair', 'a\ud800b'],
    ['nothing', ''],
  ] as const) {
    it(`refuses ${about}`, () => expect(txt(value).ok).toBe(false))
  }
})
