import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { createArtifacts } from '../../../src/platform/artifacts/local-artifacts.ts'
import { inBlocks, type TreeEntry } from '../../../src/platform/artifacts/trees.ts'
import { ByteReader } from '../../../src/platform/files/byte-reader.ts'
import { readTar, type TarEntry, tarEnd, tarHeader } from '../../../src/platform/files/tar.ts'
import { keyIdOf } from '../../../src/platform/secrets/secrets.ts'
import { createDataDirectory } from '../../../src/roles/opening/first-start.ts'
import { type Head, pack } from '../../../src/services/backups/archive.ts'
import { restoreArchive } from '../../../src/services/backups/restore.ts'
import { cleanUp, emptyDatabase, migrationsOf, newDirectory, query, searchPath } from './installation.ts'

afterEach(cleanUp)

// Whoever made the archive knows the key; only what the restore itself refuses stands between them and the machine.
const key = randomBytes(32)
const id = `dpl_${'0'.repeat(24)}`
const tree = `artifacts/servers/${id}`
const note = { name: '1_note', checksum: 'x', sql: 'CREATE TABLE note (id INT PRIMARY KEY, text TEXT)' }

const file = (path: string, text = 'hostile'): TreeEntry => {
  const content = Buffer.from(text)
  return { kind: 'file', path, mode: 0o7777, size: content.length, content: [content] }
}
const directory = (path: string): TreeEntry => ({ kind: 'directory', path, mode: 0o777 })
const link = (path: string, target: string): TreeEntry => ({ kind: 'link', path, target })

const manifest = (more: object): TreeEntry => {
  const plain = { version: 1, kind: 'static', files: {}, spaFallback: false, cleanUrls: true }
  return file(`artifacts/manifests/${id}.json`, JSON.stringify({ ...plain, ...more }))
}

async function attack(entries: TreeEntry[], head: Partial<Head> = {}, database?: string) {
  const around = await newDirectory()
  const [archive, dataDir] = [join(around, 'archive'), join(around, 'data')]
  await writeFile(join(around, 'canary'), 'untouched')
  const whole = {
    createdAt: '',
    migrations: [{ name: note.name, checksum: note.checksum }],
    ...{ tables: [{ name: 'note', columns: ['id', 'text'] }], partitions: [], sequences: [] },
    keys: [keyIdOf(key)],
    ...head,
  }
  const bytes = pack(whole, key, Readable.from(entries), () => ({ deployments: 0, incomplete: [] }))
  await pipeline(inBlocks(bytes), createGzip(), createWriteStream(archive))
  await createDataDirectory(dataDir)
  const databaseUrl = database ?? (await emptyDatabase())
  const target = { databaseUrl, dataDir, artifacts: createArtifacts(join(dataDir, 'artifacts')), searchPath }
  const result = await restoreArchive(archive, key, { ...target, migrations: await migrationsOf([note]) }).then(
    () => 'restored',
    (error: Error) => error.message,
  )
  expect((await readdir(around)).filter((name) => name !== 'data').sort()).toEqual(['archive', 'canary'])
  expect(await readFile(join(around, 'canary'), 'utf8')).toBe('untouched')
  return { result, databaseUrl, dataDir }
}

describe('a hostile archive cannot', () => {
  const blob = (name: string) => `artifacts/files/${name.slice(0, 2)}/${name}`
  const attacks: [string, TreeEntry[], RegExp][] = [
    ['leave the directory upwards', [file('artifacts/../../canary')], /which no backup has/],
    ['name an absolute path', [file('/tmp/berth-canary')], /which no backup has/],
    ['name a path with empty parts', [file('ca//root.key')], /which no backup has/],
    ['bring a file that no backup has', [file('restore-incomplete')], /which no backup has/],
    ['bring settings of a repository', [file('repos/a/b.git/config')], /which no backup has/],
    ['bring a repository with a strange name', [file('repos/../b.git/HEAD')], /which no backup has/],
    ['name a branch that is an option', [file('repos/a/b.git/HEAD', '--help')], /has no branch/],
    ['bring a link beside a server', [link('ca/root.key', '/etc/passwd')], /which no backup has/],
    ['bring a link in place of a blob', [link(blob('a'.repeat(64)), '/etc/passwd')], /which no backup has/],
    ['bring a blob under the hash of another', [file(blob('a'.repeat(64)))], /is damaged/],
    [
      'name other files than blobs in a manifest',
      [manifest({ files: { a: { hash: '../../../canary', size: 1 } } })],
      /not a manifest/,
    ],
    ['run a server from another directory', [manifest({ kind: 'node', root: 'a/../../..' })], /not a manifest/],
    ['bring a manifest that is none', [file(`artifacts/manifests/${id}.json`, '{')], /not a manifest/],
    ['put a blob elsewhere', [file(`artifacts/files/bb/${'a'.repeat(64)}`)], /which no backup has/],
    [
      'write through a link in a tree',
      [directory(tree), link(`${tree}/out`, '../../../..'), file(`${tree}/out/canary`)],
      /which no backup has/,
    ],
    [
      'write through a link to a link',
      [directory(tree), link(`${tree}/out`, '../../../..'), link(`${tree}/out/canary`, 'x')],
      /which no backup has/,
    ],
    [
      'replace a directory by a link',
      [directory(tree), directory(`${tree}/a`), link(`${tree}/a`, '../../../..'), file(`${tree}/a/canary`)],
      /appears twice/,
    ],
    ['begin a tree again', [directory(tree), directory(tree)], /appears twice/],
    ['write into a tree that was never begun', [file(`${tree}/server.js`)], /which no backup has/],
    ['make a tree a link', [link(tree, '../../..')], /which no backup has/],
    ['bring rows of a table that it does not name', [file('database/other/000000', '1\tx\n')], /does not name/],
    ['bring rows that are none', [file('database/note/000000', 'x\tx\n')], /invalid input syntax/],
  ]

  test('do what its entries ask for', async () => {
    const databaseUrl = await emptyDatabase()
    for (const [what, entries, reason] of attacks) {
      expect((await attack(entries, {}, databaseUrl)).result, what).toMatch(reason)
      expect(await query(databaseUrl, `SELECT FROM pg_class WHERE relname = 'note'`), what).toEqual([])
    }
  })

  test('bring SQL in a name or in a bound', async () => {
    const evil = 'note"; DROP TABLE note; --'
    const tables = [{ name: 'note', columns: ['id', 'text", (DROP TABLE note)'] }]
    expect((await attack([], { tables })).result).toMatch(/has a column .* that note does not have/)
    expect((await attack([], { tables: [{ name: evil, columns: ['id'] }] })).result).toBe('restored')
    const bound = `FOR VALUES FROM ('1') TO ('2'); DROP TABLE note`
    const partitions = [{ name: 'part', parent: 'note', bound }]
    expect((await attack([], { partitions })).result).toMatch(/a partition part with an invalid bound/)
    expect((await attack([], { sequences: [{ name: `x'; DROP TABLE note`, value: '1' }] })).result).toBe('restored')
  })

  test('but the same archive without malice is restored, and with no more rights than it needs', async () => {
    const { result, databaseUrl, dataDir } = await attack([
      manifest({ kind: 'node', root: 'packages/site' }),
      file('database/note/000000', '1\thello\n2\t'),
      file('database/note/000001', '\\N\n'),
      directory(tree),
      file(`${tree}/server.js`),
      link(`${tree}/out`, '../../../..'),
    ])
    expect(result).toBe('restored')
    expect((await stat(join(dataDir, tree, 'server.js'))).mode & 0o7777).toBe(0o755)
    expect(await query(databaseUrl, 'SELECT id, text FROM note ORDER BY id')).toEqual([
      { id: 1, text: 'hello' },
      { id: 2, text: null },
    ])
  })
})

describe('the reader of tar', () => {
  const read = async (bytes: Buffer) => {
    const found: TarEntry[] = []
    for await (const { head: _, ...entry } of readTar(new ByteReader(Readable.from([bytes])))) found.push(entry)
    return found
  }
  const entry = { kind: 'file', path: 'a', mode: 0o644, size: 0 } as const

  test('reads what the writer wrote, of any length', async () => {
    const long = `${'ä'.repeat(120)}/`.repeat(8)
    const entries: TarEntry[] = [
      entry,
      { ...entry, path: `${long}z` },
      { kind: 'directory', path: 'x'.repeat(100), mode: 0o755 },
      { kind: 'link', path: `${long}y`, target: `../${long}` },
    ]
    expect(await read(Buffer.concat([...entries.map(tarHeader), tarEnd]))).toEqual(entries)
    const huge = { ...entry, size: 9 * 1024 ** 3 }
    const reader = new ByteReader(Readable.from([tarHeader(huge)]))
    expect((await readTar(reader).next()).value).toMatchObject(huge)
  })

  test.each([
    ['a hard link', 156, '1'],
    ['a device', 156, '3'],
    ['a kind of GNU', 156, 'L'],
    ['a global header', 156, 'g'],
    ['a size in binary', 124, '\x80'],
    ['another sum', 0, 'b'],
  ])('refuses %s', async (_, at, byte) => {
    const block = tarHeader(entry)
    block.write(byte, at, 'latin1')
    if (at !== 0) {
      block.write('        ', 148, 'latin1')
      const sum = block.reduce((total, one) => total + one, 0)
      block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
    }
    await expect(read(Buffer.concat([block, tarEnd]))).rejects.toThrow(/damaged|no backup has/)
  })

  test('refuses names without end', async () => {
    const pax = tarHeader({ ...entry, path: 'x/'.repeat(20_000) })
    await expect(read(Buffer.concat([pax, tarEnd]))).rejects.toThrow('a name that is too long')
  })
})
