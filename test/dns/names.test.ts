// Names: how owners become relative to their zone and targets absolute.
import { describe, expect, it } from 'vitest'
import { absoluteName, hostTarget, relativeName } from '../../src/dns/names.ts'

const zone = 'example.com'

describe('a record name', () => {
  for (const [input, name] of [
    ['@', '@'],
    ['example.com', '@'],
    ['Example.COM.', '@'],
    ['www', 'www'],
    ['WWW.example.com', 'www'],
    ['www.example.com.', 'www'],
    ['www.example.com.example.com', 'www.example.com'],
    ['notexample.com', 'notexample.com'],
    ['_sip._tcp', '_sip._tcp'],
    ['*', '*'],
    ['*.dev.example.com', '*.dev'],
    ['0/25.2', '0/25.2'],
    ['bücher', 'xn--bcher-kva'],
    ['例え。テスト', 'xn--r8jz45g.xn--zckzah'],
    ['w\\119w', 'www'],
    ['a\\.b', 'a\\046b'],
    ['a\\.b.example.com', 'a\\046b'],
    ['a\\.example.com', 'a\\046example.com'],
    ['My\\032Printer\\195\\188', 'my\\032printer\\195\\188'],
    ['\\032'.repeat(63), '\\032'.repeat(63)],
    ['a'.repeat(63), 'a'.repeat(63)],
  ] as const) {
    it(`reads ${input} as ${name}`, () => expect(relativeName(input, zone)).toEqual({ ok: true, value: name }))
  }

  for (const input of [
    '',
    '.',
    'www.',
    'www.example.org.',
    'a..b',
    '.a',
    'a.*',
    'a*',
    '**',
    'a b',
    'a\\',
    'a\\25',
    'a\\256',
    'a\\é',
    '\\032'.repeat(64),
    '@.example.com',
    'a@b',
    'a\0b',
    'a\nb',
    '\ud800',
    'ü%41',
    'ü_a',
    'a'.repeat(64),
    'ü'.repeat(64),
    `${'a.'.repeat(126)}a`,
    'x'.repeat(65_536),
  ]) {
    it(`refuses ${JSON.stringify(input.slice(0, 20))} with a reason`, () => {
      const result = relativeName(input, zone)
      expect(result.ok).toBe(false)
      if (!result.ok) expect(result.detail.length).toBeLessThan(300)
    })
  }

  it('has at most 255 octets on the wire together with the zone', () => {
    const longest = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(49)}`
    expect(absoluteName(longest, zone).length).toBe(253)
    expect(relativeName(longest, zone).ok).toBe(true)
    expect(relativeName(`${longest}d`, zone).ok).toBe(false)
  })
})

describe('a target name', () => {
  for (const [input, name] of [
    ['mail.example.net', 'mail.example.net'],
    ['Mail.Example.net.', 'mail.example.net'],
    ['@', 'example.com'],
    ['.', '.'],
    ['straße.example', 'xn--strae-oqa.example'],
    ['1.0/25.2.0.192.in-addr.arpa', '1.0/25.2.0.192.in-addr.arpa'],
  ] as const) {
    it(`reads ${input} as ${name}`, () => expect(hostTarget(input, zone)).toEqual({ ok: true, value: name }))
  }

  it('refuses one label and offers the full name', () => {
    const result = hostTarget('mail', zone)
    expect(result.ok).toBe(false)
    if (!result.ok) expect(result.detail).toContain('mail.example.com')
  })

  it('refuses an address and says where addresses belong', () => {
    const result = hostTarget('192.0.2.1', zone)
    expect(result.ok).toBe(false)
    if (!result.ok) expect(result.detail).toContain('A and AAAA')
  })

  for (const input of ['*.example.net', 'https://example.net', 'a b.example', '2001:db8::1', 'localhost.']) {
    it(`refuses ${input}`, () => expect(hostTarget(input, zone).ok).toBe(false))
  }
})
