// What nobody means to publish stays out of sites that nothing builds, whichever way their files come, unless told otherwise.
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createGuard } from '../../../src/engines/builder/output/withheld.ts'
import { type Platform, startPlatform } from './host.ts'

const key = '-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n'

/** `links`: path → path of the file that it leads to. */
async function sifted(files: Record<string, string | Buffer>, links: Record<string, string> = {}) {
  const guard = createGuard<{ path: string }>()
  const stored = new Map(Object.keys(files).map((path) => [path, { path }]))
  for (const [path, file] of stored) {
    if (guard.needsContent(path, files[path]!.length)) guard.inspect(file, Buffer.from(files[path]!))
  }
  const published = new Map([...Object.keys(files).map((path) => [path, path] as const), ...Object.entries(links)])
  await guard.filter(published, stored)
  return { left: [...published.keys()], warnings: guard.warnings() }
}

describe('by what leads to it', () => {
  test.each([
    ['env.txt', '.env'],
    ['conf.txt', 'config.php'],
    ['dl.zip', 'b/src.zip'],
    ['.well-known/c2', 'config.php'],
    ['envd/notes', '.env.d/notes'],
    ['gitx/notes', '.git-x/notes'],
    ['readme', 'deploy'],
  ])('%s, which is %s, is withheld with it, and named', async (path, origin) => {
    const { left, warnings } = await sifted({ 'index.html': 'x', [origin]: key }, { [path]: origin })
    expect(left).toEqual(['index.html'])
    const message = expect.stringContaining(`leads to ${origin}, `)
    expect(warnings).toContainEqual({ code: 'file_withheld', file: path, message })
  })

  test('a link is withheld for its own name too, and what it leads to is not for that', async () => {
    const { left, warnings } = await sifted({ 'settings.txt': 'x' }, { '.env': 'settings.txt', note: 'settings.txt' })
    expect(left).toEqual(['settings.txt', 'note'])
    expect(warnings).toMatchObject([{ file: '.env', message: expect.stringMatching(/^It is /) }])
  })
})

describe('by its name', () => {
  test.each([
    ['.env', false],
    ['api/.env.local', false],
    ['.keys/id_rsa', false],
    ['prod.env', true],
    ['.well-known/deploy', true],
  ])('the warning of %s offers publishAnyway only if visitors would get it then: %s', async (path, helps) => {
    const { warnings } = await sifted({ [path]: key })
    const never = 'names that start with a dot are never served, not even with publishAnyway'
    const cure = helps ? 'turn on the project’s publishAnyway' : never
    expect(warnings).toEqual([{ code: 'file_withheld', file: path, message: expect.stringContaining(cure) }])
  })

  test.each([
    ...['id_rsa', 'keys/id_ed25519', 'server.pem', 'tls/private.key', 'cert.p12', 'app.jks', 'login.ppk'],
    ...['.env', '.env.local', '.env-production', 'api/.envrc', 'config.php', 'wp-config.php.bak', 'x.php~', 'a.phtml'],
    ...['.git-credentials', '.gitconfig', 'data.sqlite', 'app.db', 'dump.sql', 'dump.sql.gz', 'a/users.sqlite3'],
    ...['backup.zip', 'source-1.2.tar.gz', 'www.tgz', 'site_2024-01-01.tar.xz', 'shop-main.zip', 'shop-source.tar.gz'],
    ...['config.php_old', 'config.php-bak', 'config.php,v', 'config.php ', 'config.php.', 'config.php (1)', '#a.php#'],
    ...['app.db-wal', 'app.sqlite-journal', 'app.sqlite3.bak', 'app.db.gz', 'x.sql~', 'x.sql.backup', 'x.sql-20240101'],
    ...['dump.sql.tar.gz', 'prod.env', 'docker.env', 'env.production', 'env.local', 'prod.env.old', 'site.zip.bak'],
    ...['backup.7z.001', 'server.key.old', 'id_rsa.bak2', 'tls/server.pem.gz', 'backup.zip.old.1 ', 'api/prod.env/x'],
  ])('%s is withheld', async (path) => {
    const { left, warnings } = await sifted({ 'index.html': 'x', [path]: 'x' })
    expect(left).toEqual(['index.html'])
    expect(warnings).toEqual([{ code: 'file_withheld', file: path, message: expect.stringContaining('publishAnyway') }])
  })

  test.each([
    ...['.well-known/security.txt', '.well-known/acme-challenge/server.key', '.well-known/db.sqlite', 'id_rsa.pub'],
    ...['keyboard.html', 'environment.js', 'php.html', 'download.zip', 'theme-1.2.zip', 'db.js', 'sql/index.html'],
    ...['open-source-guide.zip', 'notes.txt', 'a.pdf', '.nojekyll', 'site.webmanifest', 'src/app.js', 'backup.html'],
    ...['Thumbs.db', 'img/thumbs.db', 'example.env', 'env.js', 'env.d.ts', 'release-1.2.zip', 'old/page.html', 'a.old'],
    ...[
      'photo.bak',
      'gpl-3.0',
      'environment.zip',
      'site.html.gz',
      'main.css.map',
      'copy.txt',
      '.htaccess',
      'v1.2.3.gz',
    ],
  ])('%s stays', async (path) => {
    expect(await sifted({ [path]: 'x' })).toEqual({ left: [path], warnings: [] })
  })

  test('what every repository has goes without a word', async () => {
    const files = ['.gitignore', '.gitattributes', '.github/workflows/ci.yml', '.gitbook/a.png', '.env.example']
    expect(await sifted(Object.fromEntries(files.map((path) => [path, 'x'])))).toEqual({ left: [], warnings: [] })
  })

  test('ten of a kind are named, and the others counted', async () => {
    const { left, warnings } = await sifted(
      Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`${n}.php`, '<?php'])),
    )
    expect([left.length, warnings.length]).toEqual([0, 11])
    expect(warnings.at(-1)!.message).toContain('990 more files')
  })
})

describe('by its content', () => {
  test.each([
    ['OpenSSH', key],
    ['RSA', '\n-----BEGIN RSA PRIVATE KEY-----\n'],
    ['PKCS#8', '-----BEGIN PRIVATE KEY-----\n'],
    ['encrypted', '-----BEGIN ENCRYPTED PRIVATE KEY-----\n'],
    ['PGP', '-----BEGIN PGP PRIVATE KEY BLOCK-----\n'],
    ['PuTTY', 'PuTTY-User-Key-File-3: ssh-ed25519\n'],
    [
      'OpenSSL with attributes',
      `Bag Attributes\n    localKeyID: ${'01 '.repeat(100)}\nKey Attributes: <No Attributes>\n${key}`,
    ],
    ['a host, below a comment', `# of the host\r\n${key}`],
    ['a server, after its certificates', `${'-----BEGIN CERTIFICATE-----\nMIIB\n'.repeat(1_500)}${key}`],
    ['Kubernetes, indented', `tls.key: |\n    ${key}`],
    ['UTF-8 with a mark', `\ufeff${key}`],
    ['UTF-16', Buffer.from(`\ufeff${key}`, 'utf16le')],
    ['UTF-16, below a comment', Buffer.from(`a comment\r\n${key}`, 'utf16le')],
    ['UTF-16 of the other order', Buffer.from(`\ufeff${key}`, 'utf16le').swap16()],
  ])('a key of %s is withheld, whatever it is called', async (_what, text) => {
    expect((await sifted({ deploy: text, 'notes.txt': text, '.well-known/x': text })).left).toEqual([])
  })

  test.each([
    ['a public key', '-----BEGIN PUBLIC KEY-----\n'],
    ['a certificate', '-----BEGIN CERTIFICATE-----\n'],
    ['a text about keys', `A key begins with ${key}`],
    ['nothing', ''],
  ])('%s stays', async (_what, text) => {
    expect((await sifted({ 'file.txt': text })).left).toEqual(['file.txt'])
  })

  test('neither large files nor what browsers load are looked at', async () => {
    const { needsContent: wants } = createGuard()
    expect([wants('a', 100), wants('a', 1 << 20), wants('a.html', 100), wants('a.js', 100)]).toEqual([
      true,
      false,
      false,
      false,
    ])
  })
})

describe('in a deployment', () => {
  let platform: Platform
  beforeAll(async () => {
    platform = await startPlatform()
  })
  afterAll(() => platform.stop())

  const files = { 'index.html': 'hi', 'config.php': '<?php $password = 1;', deploy: key, '.well-known/a.key': 'x' }
  const named = ['config.php', 'deploy']

  async function settled(id: string) {
    const { state, warnings } = await platform.settled(id)
    expect(state, await platform.log(id)).toBe('READY')
    return warnings.map(({ file }: { file: string }) => file)
  }
  const there = async (id: string) => Object.keys((await platform.artifacts.read(id))!.files).sort()

  test('of a repository, until the project says otherwise', async () => {
    await platform.project('leaks', files)
    const id = await platform.deploy('leaks')
    expect(await settled(id)).toEqual(named)
    expect(await there(id)).toEqual(['.well-known/a.key', 'index.html'])
    const { body } = await platform.api.call('PATCH', '/projects/leaks', {
      body: { settings: { publishAnyway: true } },
    })
    expect(body.changes).toEqual([{ field: 'settings.publishAnyway', appliesTo: 'next deployment' }])
    const all = await platform.deploy('leaks')
    expect(await settled(all)).toEqual([])
    expect(await there(all)).toEqual(Object.keys(files).sort())
  })

  test('of uploaded files, built before or not', async () => {
    const { api } = platform
    await api.call('POST', '/projects', { body: { name: 'sent' } })
    const headers = { 'content-type': 'application/octet-stream' }
    const hashes = new Map(
      Object.entries(files).map(([path, text]) => [path, createHash('sha256').update(text).digest('hex')]),
    )
    for (const [path, hash] of hashes) {
      await api.call('PUT', `/uploads/${hash}`, { body: Buffer.from(files[path as keyof typeof files]), headers })
    }
    const listed = [...hashes].map(([path, sha256]) => ({
      path,
      sha256,
      size: files[path as keyof typeof files].length,
    }))
    for (const prebuilt of [true, false]) {
      const body = { project: 'sent', source: { files: listed, prebuilt } }
      const { body: made } = await api.call('POST', '/deployments', { body })
      expect(await settled(made.id)).toEqual(named)
      expect(await there(made.id)).toEqual(['.well-known/a.key', 'index.html'])
    }
  })

  test('nothing is withheld of what a build wrote, and a Dockerfile that nothing uses is named', async () => {
    const build = 'mkdir dist && cp index.html config.php dist'
    await platform.project('built', {
      ...files,
      Dockerfile: 'FROM x',
      'package.json': JSON.stringify({ scripts: { build } }),
    })
    const id = await platform.deploy('built')
    expect(await settled(id)).toEqual(['Dockerfile'])
    expect(await there(id)).toEqual(['config.php', 'index.html'])
  })
})
