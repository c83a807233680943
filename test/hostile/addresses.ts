// What a hostile caller writes into paths, headers and cursors.
import fc from 'fast-check'
import { hostileText, hostileValue, toJson } from './values.ts'

/** Path segments as they stand in the address, escaped or not; those that climb are sent over sockets elsewhere. */
export const hostileSegment = fc.oneof(
  fc.constantFrom(
    ...[
      '%00',
      'a%00b',
      '%ff',
      '%c0%ae',
      '%ed%a0%80',
      '%',
      '%zz',
      '%2f',
      'a%2fb',
      '..%2f..',
      '%2e%2e%2f%2e%2e',
      '%5c',
      '%0d%0a',
    ],
    ...[
      'a'.repeat(512),
      'a'.repeat(513),
      'a'.repeat(600),
      '😀',
      '%F0%9F%98%80',
      '__proto__',
      'constructor',
      '%20',
      '+',
    ],
    ...[
      "'",
      '"',
      ';',
      ':',
      '*',
      '@',
      '$1',
      '-1',
      '0',
      'null',
      'undefined',
      'current',
      'states',
      'batch',
      'prj_',
      'prj_x',
    ],
    ...['dpl_', 'xn--', '*.example.test', '*.', '1.2.3.4', 'a..b', '...', '%25', '%2500', '~', '&', '=', '{id}', '<x>'],
  ),
  hostileText
    .filter((text) => !/^\.{0,2}$/.test(text))
    .map((text) => encodeURIComponent(text.toWellFormed()).slice(0, 600)),
)

// HTTP itself keeps control characters out of headers, so these are those that get through.
const headerTexts = [
  ...['', ' ', 'x', '*', '"', 'W/', 'W/"x"', '"x", "y"', '"\xff"', ',', ',,,', '-1', '0', '1e309', '9'.repeat(400)],
  ...[
    'a'.repeat(256),
    'a'.repeat(5000),
    '\xe9\xff',
    'a\tb',
    '__proto__',
    '2026-11-14, 2026-11-14',
    '1970-01-01',
    '%00',
  ],
  ...['evt_01jcqk8c4p0gs16q0td7w3y2', '2147483648', '999999999', '1 ', "' OR 1=1 --", 'text/event-stream', '*/*;q=x'],
]

/** Authorization and Accept: text/event-stream are left to tests of their own. */
export const hostileHeader = fc.tuple(
  fc.constantFrom(
    ...[
      'if-match',
      'if-none-match',
      'api-version',
      'last-event-id',
      'x-request-id',
      'accept-encoding',
      'accept-language',
    ],
    ...[
      'content-encoding',
      'range',
      'expect',
      'origin',
      'host',
      'x-forwarded-for',
      'if-modified-since',
      'te',
      'cookie',
    ],
  ),
  fc.constantFrom(...headerTexts),
)

export const hostileCursor = fc.oneof(
  hostileText,
  fc.base64String({ maxLength: 100 }),
  hostileValue.map((value) => Buffer.from(toJson(value)).toString('base64url')),
  fc
    .tuple(fc.array(hostileValue, { maxLength: 4 }), fc.constantFrom('asc', 'desc', null))
    .map(([parts, order]) => Buffer.from(toJson(['projects', order, ...parts])).toString('base64url')),
)
