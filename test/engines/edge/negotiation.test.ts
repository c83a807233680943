import { describe, expect, test } from 'vitest'
import { isNamedByContent } from '../../../src/engines/edge/answer/caching.ts'
import { contentTypeOf } from '../../../src/engines/edge/answer/content-types.ts'
import { preferenceOf } from '../../../src/engines/edge/answer/encodings.ts'
import { matchesTag, rangeOf } from '../../../src/engines/edge/answer/ranges.ts'
import { hostName } from '../../../src/engines/edge/hosts/host-header.ts'
import { headersOf, matchingBlocks, parseHeaders } from '../../../src/platform/site-rules/header-rules.ts'

test.each([
  [undefined, 'identity'],
  ['', 'identity'],
  ['gzip, deflate, br, zstd', 'br gzip identity'],
  ['gzip', 'gzip identity'],
  ['GZIP;Q=1.0', 'gzip identity'],
  ['br;q=0.5, gzip;q=0.8', 'gzip br identity'],
  ['br;q=0, gzip', 'gzip identity'],
  ['*', 'br gzip identity'],
  ['*;q=0', 'identity'],
  ['gzip;q=0.5, *;q=0.1', 'gzip br identity'],
  ['identity', 'identity'],
  ['identity;q=1, br;q=0.5', 'identity br'],
  ['identity;q=0', 'identity'],
  ['br;q=banana', 'identity'],
  ['x-gzip', 'gzip identity'],
])('Accept-Encoding %j prefers %s', (header, expected) => expect(preferenceOf(header).join(' ')).toBe(expected))

test.each([
  [undefined, null],
  ['bytes=0-3', { start: 0, end: 3 }],
  ['bytes=4-', { start: 4, end: 9 }],
  ['bytes=-2', { start: 8, end: 9 }],
  ['bytes=-20', { start: 0, end: 9 }],
  ['bytes=0-99', { start: 0, end: 9 }],
  ['bytes=10-', 'unsatisfiable'],
  ['bytes=-0', 'unsatisfiable'],
  ['bytes=3-1', null],
  ['bytes=0-1,3-4', null],
  ['bytes=-', null],
  ['bytes=a-b', null],
  ['lines=0-1', null],
  ['bytes=99999999999999999999-', null],
])('Range %j of ten bytes is %j', (header, expected) => expect(rangeOf(header, 10)).toEqual(expected))

test('If-None-Match knows lists, weak tags and the star', () => {
  for (const header of ['"a"', 'W/"a"', '"b", "a"', '"b",W/"a"', '*', ' * '])
    expect(matchesTag(header, '"a"')).toBe(true)
  for (const header of ['"b"', 'a', '', '"a-br"']) expect(matchesTag(header, '"a"')).toBe(false)
})

test.each([
  'app.3f2a9c1d.js',
  'static/js/main.3f2a9c1d.chunk.js',
  'img/logo-3f2a9c1d7e.svg',
  'assets/index-BxYz12_3.css',
  'assets/index-D3f-_a9Q.js',
  'assets/chunk-3FKZ5XQ2.js',
  'docs/assets/inter-Dx4kXJAl.woff2',
  '_nuxt/entry.Bf9xK2aQ.js',
  '_next/static/chunks/main.js',
  '_app/immutable/entry/start.js',
  '_astro/page.css',
])('%s is immutable', (path) => expect(isNamedByContent(path)).toBe(true))

test.each([
  'index.html',
  'app.3f2a9c1d.html',
  'app.js',
  'photo-20241115.jpg',
  'assets/banner-1920x1080.png',
  'assets/small-1280x720.png',
  'assets/logo-download.svg',
  'assets/logo-Download.svg',
  'assets/guide-chapter12.pdf',
  'assets/my-deadbeef.js',
  'assets/version2.js',
  'files/index-BxYz12_3.css',
  '_nuxt/builds/latest.json',
  'robots.txt',
])('%s is asked for again', (path) => expect(isNamedByContent(path)).toBe(false))

test('text has a charset, and what is unknown is bytes', () => {
  expect(contentTypeOf('a/INDEX.HTML')).toBe('text/html; charset=utf-8')
  expect(contentTypeOf('a.mjs')).toBe('text/javascript; charset=utf-8')
  expect(contentTypeOf('a.svg')).toBe('image/svg+xml; charset=utf-8')
  expect(contentTypeOf('a.woff2')).toBe('font/woff2')
  expect(contentTypeOf('.well-known/apple-app-site-association')).toBe('application/json; charset=utf-8')
  for (const path of ['a', 'a.unknown', 'a.constructor', '__proto__']) {
    expect(contentTypeOf(path)).toBe('application/octet-stream')
  }
})

test.each([
  ['Example.COM', 'example.com'],
  ['example.com:8080', 'example.com'],
  ['example.com.', 'example.com'],
  ['example.com.:80', 'example.com'],
  ['example.com:', 'example.com'],
  ['[::1]:8080', '[::1]:8080'],
  ['', null],
  ['.', null],
  [':80', null],
  ['a b', null],
  ['a/b', null],
  ['user@example.com', null],
  ['<script>', null],
  ['*.example.com', null],
  ['example.com:80a', null],
  ['example.com:123456', null],
  ['a'.repeat(254), null],
  ['ex\u00e4mple.com', null],
])('the host %j is %j', (text, expected) => expect(hostName(text)).toBe(expected))

describe('rules of _headers', () => {
  const { blocks, notes } = parseHeaders(`
# all of it
/*
  X-Frame-Options: DENY
  Link: </a.css>; rel=preload
/docs/:page
  X-Page: one
  Link: </b.css>; rel=preload
nonsense
  X-Lost: 1
/bad
  Set-Cookie: a=b
  Content-Length: 3
  Transfer-Encoding: chunked
  Connection: close
  Basic-Auth me:secret
  No colon here
  Bad Name: x
  X-Control: a\u0000b
`)
  const at = (path: string) => Object.fromEntries(headersOf(blocks, matchingBlocks(blocks, path)))

  test('all matching blocks count, and values of one name are joined', () => {
    expect(at('/')).toEqual({ 'x-frame-options': 'DENY', link: '</a.css>; rel=preload' })
    expect(at('/docs/x')).toEqual({
      'x-frame-options': 'DENY',
      'x-page': 'one',
      link: '</a.css>; rel=preload, </b.css>; rel=preload',
    })
    expect(at('/docs/x/y')).not.toHaveProperty('x-page')
  })

  test('framing, cookies, passwords and what is malformed are refused and noted', () => {
    expect(at('/bad')).toEqual(at('/'))
    expect(notes).toHaveLength(10)
    expect(notes.filter(({ protects }) => protects)).toEqual([
      { line: 16, text: 'a header line is a name, a colon and a printable value', protects: true },
    ])
  })

  test('Basic-Auth is kept as hashes, and noted as what protects where it cannot be followed', () => {
    const { blocks, notes } = parseHeaders('/a\n  Basic-Auth: me:secret you:other:one\n  X-A: 1')
    expect(notes).toEqual([])
    expect(blocks).toMatchObject([{ headers: [['x-a', '1']], credentials: [expect.any(Buffer), expect.any(Buffer)] }])
    expect(JSON.stringify(blocks)).not.toContain('secret')
    const bad = [
      'Basic-Auth: a:secret',
      '/a*b\n  Basic-Auth: a:secret',
      '/a\n  basic-auth: secret',
      '  Basic-Auth: a:secret',
    ]
    for (const text of [...bad, '/a\n  Basic-Auth:', '/a\n  Basic-Auth: a:secret\u00e9']) {
      const { notes } = parseHeaders(text)
      expect(notes.some(({ protects }) => protects)).toBe(true)
      expect(JSON.stringify(notes)).not.toContain('secret')
    }
  })
})
