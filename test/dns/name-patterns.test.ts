// Patterns of names: which ones there are, what they stand for, and when one is within another.
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
  const labels = ['a', 'b', '_a', 'ab']
  const names = [...labels, ...labels.flatMap((one) => labels.map((other) => `${one}.${other}`))]
  const patterns = ['@', '*', ...names.flatMap((name) => [name, `*.${name}`, `${name}.*`])]
  const deep = ['@', ...names, ...names.flatMap((name) => labels.map((label) => `${label}.${name}`))]
  let covered = 0
  for (const wide of patterns) {
    for (const narrow of patterns.filter((one) => coversName(wide, one))) {
      const beyond = deep.filter((name) => coversName(narrow, name) && !coversName(wide, name))
      expect(beyond, `${wide} ${narrow}`).toEqual([])
      covered++
    }
  }
  expect(covered).toBeGreaterThan(patterns.length)
})
