// What a hostile caller sends: values, names, paths and headers that break naive parsers, databases and templates.
import fc from 'fast-check'
import { anyCharacter } from '../helpers/characters.ts'

const deep = (levels: number): unknown => {
  let value: unknown = 1
  for (let n = 0; n < levels; n++) value = n % 2 ? [value] : { a: value }
  return value
}

/** Text that stands in a body as it is, because no JavaScript value is written so. */
export const literal = (text: string) => `@@${text}@@`

export function toJson(body: unknown): string {
  return (JSON.stringify(body) ?? '').replace(/"@@([^"]*)@@"/g, '$1')
}

const numbers = [0, -0, -1, 1.5, 29, 86_401, 2 ** 31, -(2 ** 31) - 1, 2 ** 53, -(2 ** 53), 1e21, 5e-324]
const literals = ['1e309', '-1e309', '1E400', '123456789012345678901234567890', '0.1e-400', '-0'].map(literal)

const texts = [
  ...['', ' ', '\t', '\n', '\r\nX-Injected: 1', '\0', 'a\0b', '\ud800', '\udfff\ud800x', '\uffff', '\u2028', '\u202e'],
  ...['😀', 'é', 'e\u0301', 'İ', 'ß', '\u200b', '\ufeff', 'a'.repeat(256), 'a'.repeat(2001), 'é'.repeat(20_001)],
  ...['__proto__', 'constructor', 'prototype', 'toString', 'null', 'undefined', 'NaN', 'true', '3600', '1e309'],
  ...[
    "'",
    '"',
    '\\',
    '`',
    "' OR 1=1 --",
    '$1',
    '#{7*7}',
    '{{7*7}}',
    '%',
    '_',
    '%00',
    '%s%n',
    '<script>',
    '--help',
    '-x',
  ],
  ...['../../etc/passwd', '..', '/', '//', 'a/b/c', '/etc/passwd', 'C:\\x', 'file:///etc/passwd', 'refs/heads/main'],
]

/** Read by some parsers as dates and by others not, or not as the same one. */
export const dates = [
  ...['2030-12-31T23:59:60Z', '2016-12-31T23:59:60.5Z', '9999-12-31T23:59:59.999-23:59', '2030-01-01 00:00:00Z'],
  ...['2030-01-01T00:00:00+01', '2030-01-01T00:00:00+0100', '2030-01-01\u00a000:00:00Z', '2030-01-01\n00:00:00Z'],
  ...['0000-01-01T00:00:00Z', '2030-02-29T00:00:00Z', '2030-01-01T24:00:00Z', '2030-01-01t00:00:00z', '2030-01-01'],
  ...['2030-01-01T00:00:00.123456789012345678901234567890Z', '+275760-09-13T00:00:00Z', '9999-12-31T23:59:59Z'],
]

const names = [
  ...[
    '.',
    '..',
    'a..b',
    '.a',
    '*',
    '*.',
    '*.*.a.test',
    'a.*.test',
    'xn--',
    'xn--a',
    'xn--0',
    '-a.test',
    'a_b.test',
    '1.2.3.4',
  ],
  ...['::1', '0x7f.1', 'localhost', 'co.uk', 'ns1.berth.test', 'EXAMPLE.TEST', '例え.test', `${'a'.repeat(64)}.test`],
  ...['a.'.repeat(127), `${'a.'.repeat(130)}test`, 'a\\.b', '\\000', '\\999', '@', '@.test', 'a b.test', 'a。test'],
  ...[
    '10 mail',
    '70000 mail.test',
    '0 issue "',
    '"'.repeat(3),
    '"a" "b"',
    '(',
    ';x',
    '\\# 4 00',
    '1 . alpn=',
    '256.1.1.1',
  ],
  ...['1 . mandatory=alpn', '0 0 0 .', '12345 13 2 zz', '3 1 1 abc', '"\\', '$INCLUDE /etc/passwd', '$ORIGIN ..'],
  ...[
    'http://[::1',
    'https://u:p@h.test/',
    'javascript:alert(1)',
    'http://169.254.169.254/',
    'https://[::ffff:7f00:1]/',
  ],
  ...[
    'https://h.test/\0',
    'https://h.test:99999/',
    'https://',
    'https://😀.test/',
    'https://h.test/#f',
    'HTTPS://H.TEST',
  ],
]

const shapes = [
  ...[null, true, false, [], {}, [[]], [null], [{}], [1, 'a'], { a: 1 }, deep(50), deep(1000)],
  ...[
    Array(101).fill('a'),
    Array(1001).fill(0),
    Array(60).fill({ type: 'A' }),
    { length: 1e9 },
    { toString: 1, valueOf: 1 },
  ],
  ...['{"__proto__":{"admin":true}}', '{"constructor":{"prototype":{"x":1}}}'].map(
    (text) => JSON.parse(text) as object,
  ),
]

export const hostileText = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...texts, ...dates, ...names) },
  { weight: 1, arbitrary: fc.string({ unit: anyCharacter, maxLength: 40 }) },
  { weight: 1, arbitrary: fc.string({ maxLength: 20 }) },
  {
    weight: 1,
    arbitrary: fc.string({ unit: fc.constantFrom('.', '*', '\\', '"', ' ', 'a', '1', ';', '(', '_', '-') }),
  },
)

export const hostileValue = fc.oneof(
  { weight: 4, arbitrary: hostileText },
  { weight: 2, arbitrary: fc.constantFrom<unknown>(...numbers, ...literals) },
  { weight: 2, arbitrary: fc.constantFrom<unknown>(...shapes) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
)

export const hostileKey = fc.constantFrom(
  ...[
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'hasOwnProperty',
    '$ref',
    '$id',
    '',
    ' ',
    'a~b/c',
    '\0',
    '\ud800',
  ],
  ...['id', 'accountId', 'account_id', 'createdAt', 'state', 'verified', '0', 'length', 'x'.repeat(500), '😀'],
)
