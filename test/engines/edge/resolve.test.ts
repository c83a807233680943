import { describe, expect, test } from 'vitest'
import { resolve } from '../../../src/engines/edge/hosts/resolve.ts'
import { buildSite } from '../../../src/engines/edge/hosts/sites.ts'
import type { Manifest } from '../../../src/platform/artifacts/artifacts.ts'
import { parseRedirects } from '../../../src/platform/site-rules/redirects.ts'

function siteOf(paths: string[], settings: Partial<Manifest> = {}, redirects = '') {
  const files = Object.fromEntries(paths.map((path) => [path, { hash: path.padEnd(64, '0'), size: 1 }]))
  const manifest: Manifest = { version: 1, kind: 'static', files, spaFallback: false, cleanUrls: true, ...settings }
  const site = buildSite('dpl_1', manifest, { redirects: parseRedirects(redirects).rules, headers: [] })
  /** `about.html`, `404 404.html`, `308 /about`, or nothing. */
  return (path: string, query = '', language?: string) => {
    const found = resolve(site, path, query, { language, asApp: manifest.spaFallback })
    if (!found) return 'nothing'
    if (found.kind === 'redirect') return `${found.status} ${found.location}`
    return found.status === 200 ? found.path : `${found.status} ${found.path}`
  }
}

describe('pages have one address each', () => {
  const at = siteOf(['index.html', 'about.html', 'docs/index.html', 'docs/intro.html', 'both.html', 'both/index.html'])
  test.each([
    ['/', 'index.html'],
    ['/index.html', '308 /'],
    ['/index', '308 /'],
    ['/about', 'about.html'],
    ['/about.html', '308 /about'],
    ['/about/', '308 /about'],
    ['/docs/', 'docs/index.html'],
    ['/docs', '308 /docs/'],
    ['/docs/index.html', '308 /docs/'],
    ['/docs/index', '308 /docs/'],
    ['/docs/intro', 'docs/intro.html'],
    ['/docs/intro.html', '308 /docs/intro'],
    ['/both', 'both.html'],
    ['/both/', 'both/index.html'],
    ['/About', 'nothing'],
    ['//about', 'nothing'],
    ['/docs//', 'nothing'],
  ])('%s → %s', (path, expected) => expect(at(path)).toBe(expected))

  test('a redirect keeps the query, and encodes what is not ASCII', () => {
    expect(at('/about.html', '?a=1&b=2')).toBe('308 /about?a=1&b=2')
    expect(at('/about.html', '?a=\u00e9')).toBe('308 /about?a=%C3%A9')
    expect(siteOf(['käse/index.html'])('/käse')).toBe('308 /k%C3%A4se/')
    expect(siteOf(['a?b#c.html'])('/a?b#c.html')).toBe('308 /a%3Fb%23c')
  })

  test('a folder whose name looks like another host redirects within this one', () => {
    expect(siteOf(['\\evil.example/index.html'])('/\\evil.example')).toBe('308 /%5Cevil.example/')
  })

  test('a plain file keeps its address when a page would like it too', () => {
    const at = siteOf(['about', 'about.html'])
    expect([at('/about'), at('/about.html')]).toEqual(['about', 'about.html'])
  })
})

test('without clean URLs, pages are at the names of their files', () => {
  const at = siteOf(['index.html', 'about.html', 'docs/index.html'], { cleanUrls: false })
  expect(
    ['/', '/index.html', '/about.html', '/about', '/docs', '/docs/', '/docs/index.html'].map((p) => at(p)),
  ).toEqual(['index.html', 'index.html', 'about.html', 'nothing', '308 /docs/', 'docs/index.html', 'docs/index.html'])
})

test('404.html is shown with status 404 where nothing is, and at its own address', () => {
  const at = siteOf(['index.html', '404.html'])
  expect([at('/nope'), at('/nope.png'), at('/404'), at('/404.html')]).toEqual([
    '404 404.html',
    '404 404.html',
    '404 404.html',
    '308 /404',
  ])
})

test('a single-page app answers paths without extension, but not missing files or hidden ones', () => {
  const at = siteOf(['index.html', 'app.js'], { spaFallback: true })
  expect([at('/users/7'), at('/users/'), at('/app.js'), at('/gone.js'), at('/.well-known/change-password')]).toEqual([
    'index.html',
    'index.html',
    'app.js',
    'nothing',
    'nothing',
  ])
})

test('hidden files and the files of rules are not served; .well-known is', () => {
  const hidden = ['.env', '.git/config', 'a/.htaccess', '.well-known/.secret', '_redirects', '_headers']
  const at = siteOf([...hidden, '.well-known/acme', 'docs/_headers', '.well-known/index.html'])
  for (const path of hidden) expect(at(`/${path}`)).toBe('nothing')
  expect(at('/.well-known/acme')).toBe('.well-known/acme')
  expect(at('/docs/_headers')).toBe('docs/_headers')
})

test('names of object properties are no files', () => {
  const at = siteOf(['index.html'], { spaFallback: false })
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) expect(at(`/${name}`)).toBe('nothing')
})

describe('rules of _redirects', () => {
  const at = siteOf(
    ['index.html', 'new.html', 'shadowed.html', 'taken.html', 'app/index.html', 'gone.html', '404.html'],
    {},
    `
    /old            /new
    /old-302        /new                     302
    /see            /new                     303
    /keep           /new                     307
    /perm           /new#part                308   # a comment
    /news/*         /blog/:splat
    /blog/:year/:slug  /posts/:slug?y=:year  302
    /shadowed       /new
    /taken          /new                     301!
    /out/*          https://example.com/x/:splat
    /app/*          /app/index.html          200
    /app-clean/*    /app                     200
    /never/*        /not-there               200
    /gone/*         /gone.html               404
    /loop/*         /loop/:splat
    /any/*          /:splat                  302
    /search         /find?q=1
    `,
  )
  test.each([
    ['/old', '', '301 /new'],
    ['/old/', '', '301 /new'],
    ['/old', '?a=1', '301 /new?a=1'],
    ['/old-302', '', '302 /new'],
    ['/see', '', '303 /new'],
    ['/keep', '', '307 /new'],
    ['/perm', '?a=1', '308 /new?a=1#part'],
    ['/news', '', '301 /blog/'],
    ['/news/a/b c', '', '301 /blog/a/b%20c'],
    ['/blog/2026/a&b', '', '302 /posts/a&b?y=2026'],
    ['/blog/2026/x/y', '', '404 404.html'],
    ['/search', '?a=1', '301 /find?q=1'],
    ['/shadowed', '', 'shadowed.html'],
    ['/taken', '', '301 /new'],
    ['/out/a/b', '?c=d', '301 https://example.com/x/a/b?c=d'],
    ['/app/deep/link', '', 'app/index.html'],
    ['/app-clean/deep', '', 'app/index.html'],
    ['/never/x', '', '404 404.html'],
    ['/gone/x', '', '404 gone.html'],
    ['/loop/x', '', '404 404.html'],
  ])('%s%s → %s', (path, query, expected) => expect(at(path, query)).toBe(expected))

  test('a splat cannot lead to another host, nor break out of the header', () => {
    expect(at('/any//evil.example/x')).toBe('302 /evil.example/x')
    expect(at('/any/\\evil.example')).toBe('302 /%5Cevil.example')
    expect(at('/any/\\/evil.example')).toBe('302 /%5C/evil.example')
    expect(at('/any/a\r\nset-cookie: b')).toBe('302 /a%0D%0Aset-cookie:%20b')
    expect(at('/any/\ud800')).toBe('302 /%EF%BF%BD')
  })

  test('/* with 200 makes a single-page app, and files win over it', () => {
    const at = siteOf(['index.html', 'a.js', 'about.html'], {}, '/* /index.html 200')
    expect([at('/x/y'), at('/a.js'), at('/about'), at('/')]).toEqual(['index.html', 'a.js', 'about.html', 'index.html'])
  })

  test('the first rule that matches counts, also when a later one is forced', () => {
    const at = siteOf(['page.html'], {}, '/page /first\n/page /second 301!')
    expect(at('/page')).toBe('page.html')
  })

  test('lines that cannot be followed are noted and left out', () => {
    const { rules, notes } = parseRedirects(
      [
        '/ok /fine',
        '/only-one',
        'relative /x',
        '/a /b 418',
        '/a https://example.com 200',
        '/a /b 301 Country=de',
        '/a id=:%zz /b',
        '/a*b /x',
        '/x ftp://example.com',
        '//evil /x',
        '/%zz /x',
      ].join('\r\n'),
    )
    expect(rules).toHaveLength(1)
    expect(notes.map((note) => note.line)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  })

  test('parameters of the query decide, and are taken out of it', () => {
    const at = siteOf(
      ['index.html'],
      {},
      '/store id=:id kind=book /books/:id 302\n/store id=:id /goods/:id\n/same old=1 /same 302\n/raw q=:q /:q\n/show id=7 /index.html 200',
    )
    expect(at('/store', '?kind=book&x=1&id=7')).toBe('302 /books/7?x=1')
    expect(at('/store', '?id=a%2Fb%20c')).toBe('301 /goods/a/b%20c')
    expect(at('/store')).toBe('nothing')
    expect(at('/store', '?id=')).toBe('nothing')
    expect(at('/same', '?old=1')).toBe('302 /same')
    expect(at('/same', '?old=2')).toBe('nothing')
    expect(at('/raw', '?q=//evil.example')).toBe('301 /evil.example')
    expect(at('/raw', '?q=a%0d%0aset-cookie:b')).toBe('301 /a%0D%0Aset-cookie:b')
    expect([at('/show', '?id=7'), at('/show', '?id=8')]).toEqual(['index.html', 'nothing'])
  })

  test('the language that the visitor prefers decides', () => {
    const at = siteOf(['index.html'], {}, '/home /de/ 302 Language=de,at\n/home /fr/ Language=FR\n/home /en/ 302')
    expect(at('/home', '', 'de-CH, fr;q=0.9')).toBe('302 /de/')
    expect(at('/home', '', 'es, fr;q=0.9')).toBe('302 /en/')
    expect(at('/home', '', 'de;q=0.1, fr;q=0.9')).toBe('301 /fr/')
    expect([at('/home'), at('/home', '', ';;q=;,,'), at('/home', '', 'den')]).toEqual([
      '302 /en/',
      '302 /en/',
      '302 /en/',
    ])
  })

  test('a thousand rules are followed and no more', () => {
    const { rules, notes } = parseRedirects(Array.from({ length: 1_500 }, (_, i) => `/a${i} /b`).join('\n'))
    expect([rules.length, notes.length]).toEqual([1_000, 1])
  })
})
