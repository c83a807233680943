// Patterns of names: which ones there are, what they stand for, and when one is within another.
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { coversName, parseNamePattern } from '../../src/dns/name-patterns.ts'

const zone = 'example.com'

test.each([
  ['@', '@'],
  ['example.com', '@'],
  ['WWW', 'www'],
  ['www.example.com.', 'www'],
  ['*', '*'],
  ['*.example.com', '*'],
  ['*.dyn', '*.dyn'],
  ['_acme-challenge.*', '_acme-challenge.*'],
  ['_ACME-challenge.www.*', '_acme-challenge.www.*'],
  ['bücher.*', 'xn--bcher-kva.*'],
])('%s is the pattern %s', (input, canonical) => {
  expect(parseNamePattern(input, zone)).toEqual({ ok: true, value: canonical })
})

test.each([
  ...[
    '',
    '*.*',
    '@.*',
    'example.com.*',
    '*.dyn.*',
    'a.*.b',
    'a*',
    '*a',
    '_acme*',
    '.*',
    'a..*',
    'a.**',
    'a b',
    '%',
    '_%',
  ],
  ...['other.example.net.', 'a\\.b.', '*.'.repeat(200), 'x'.repeat(64)],
])('%s is none', (input) => expect(parseNamePattern(input, zone).ok).toBe(false))

test.each([
  ['@', ['@'], ['www', '*']],
  ['www', ['www'], ['@', 'a.www', 'ww', 'www.a', '*.www', 'www.*']],
  ['*', ['www', 'a.b', '*', '*.a', 'a.*'], ['@']],
  ['*.dyn', ['a.dyn', 'a.b.dyn', '*.dyn', '*.a.dyn'], ['dyn', '@', 'adyn', 'a.dyn.b', '*', 'dyn.*']],
  ['a.*', ['a.b', 'a.b.c', 'a.*', 'a.b.*'], ['a', '@', 'ab', 'b.a', 'ab.c', '*', '*.a']],
  // Letters of SQL's own patterns are nothing but letters.
  ['_a.*', ['_a.b'], ['xa.b', 'ba.b']],
])('%s covers %j, and not %j', (pattern, inside, outside) => {
  expect(inside.filter((name) => !coversName(pattern, name))).toEqual([])
  expect(outside.filter((name) => coversName(pattern, name))).toEqual([])
})

test('what a covered pattern stands for, the covering one stands for too', () => {
  const label = fc.constantFrom('a', 'b', '_a', 'ab')
  const labels = fc.array(label, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('.'))
  const pattern = fc.oneof(
    labels,
    labels.map((name) => `*.${name}`),
    labels.map((name) => `${name}.*`),
    fc.constantFrom('@', '*'),
  )
  fc.assert(
    fc.property(pattern, pattern, labels, (wide, narrow, name) => {
      fc.pre(coversName(wide, narrow) && coversName(narrow, name))
      expect(coversName(wide, name)).toBe(true)
    }),
    { numRuns: 2_000 },
  )
})
