// Archives of whoever sends one: what lies about its sizes and names is refused, and costs little.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type TarEntry, tarEnd, tarHeader, tarPadding } from '../../../src/platform/files/tar.ts'
import { listArchive } from '../../../src/services/uploads/archives.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-archives-'))
})
afterAll(() => rm(directory, { recursive: true }))

let count = 0
async function list(bytes: Buffer, limits: object = {}) {
  const path = join(directory, String(count++))
  await writeFile(path, bytes)
  return listArchive(path, { files: 100, bytes: 1_000_000, fileBytes: 500_000, ...limits })
}

/** An entry of any kind: the header of a file, changed, with its sum put right. */
function entry(flag: string, name: string, content = '', change: (block: Buffer) => void = () => {}): Buffer {
  const bytes = Buffer.from(content)
  const block = Buffer.from(tarHeader({ kind: 'file', path: name, mode: 0o644, size: bytes.length } as TarEntry))
  block.write(flag, 156, 'latin1')
  change(block)
  block.fill(0x20, 148, 156)
  const sum = block.reduce((sum, byte) => sum + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return Buffer.concat([block, bytes, tarPadding(bytes.length)])
}

const record = (key: string, value: string) => {
  const rest = ` ${key}=${value}\n`
  const length = Buffer.byteLength(rest)
  const digits = String(length + String(length).length).length
  return `${length + digits}${rest}`
}
const pax = (...records: [string, string][]) =>
  entry('x', 'pax', records.map(([key, value]) => record(key, value)).join(''))
const archive = (...entries: Buffer[]) => Buffer.concat([...entries, tarEnd])

describe('an archive', () => {
  it('of long names, by GNU or by pax, is read as it was meant', async () => {
    const deep = `${'d'.repeat(100)}/${'e'.repeat(100)}/f`
    const found = await list(
      archive(
        entry('L', '././@LongLink', `${deep}\0`),
        entry('0', 'short', 'one'),
        pax(['path', 'ä/long']),
        entry('0', 'ignored', 'two'),
        entry('g', 'global', record('comment', 'of git')),
        entry('0', './plain', 'three'),
      ),
    )
    expect(found.map(({ path, size }) => [path, size])).toEqual([
      [deep, 3],
      ['ä/long', 3],
      ['plain', 5],
    ])
  })

  const refused: [string, () => Buffer, RegExp][] = [
    ['a path that leads out, by pax', () => archive(pax(['path', '../up']), entry('0', 'a', 'x')), /`\.\.` segment/],
    ['an absolute path, by GNU', () => archive(entry('L', 'l', '/etc/passwd\0'), entry('0', 'a', 'x')), /absolute/],
    ['.git, by pax', () => archive(pax(['path', 'a/.GiT/config']), entry('0', 'a', 'x')), /\.git/],
    ['the same path twice in two forms', () => archive(entry('0', '\u00e9', 'x'), entry('0', 'e\u0301', 'y')), /twice/],
    ['a sparse file of GNU', () => archive(entry('S', 'a', 'x')), /sparse/],
    ['a sparse file by pax', () => archive(pax(['GNU.sparse.major', '1']), entry('0', 'a', 'x')), /sparse/],
    [
      'a size by pax that is longer than the archive',
      () => archive(pax(['size', '400000']), entry('0', 'a', 'x')),
      /too early/,
    ],
    ['a size that is no number', () => archive(pax(['size', '1e3']), entry('0', 'a', 'x')), /has no size/],
    ['a size that is negative', () => archive(pax(['size', '-1']), entry('0', 'a', 'x')), /has no size/],
    [
      'a size that is too large for a number',
      () => archive(pax(['size', '9'.repeat(30)]), entry('0', 'a', 'x')),
      /has no size/,
    ],
    [
      'a name for all files',
      () => archive(entry('g', 'g', record('path', 'x')), entry('0', 'a', 'x')),
      /for all of its files/,
    ],
    ['a hard link', () => archive(entry('1', 'a')), /hard link/],
    ['a device', () => archive(entry('3', 'a')), /device/],
    [
      'a link that leads out',
      () => archive(entry('2', 'a/b', '', (block) => block.write('../../x', 157))),
      /points outside/,
    ],
    [
      'a record of pax that lies about its length',
      () => archive(entry('x', 'p', '99 path=a\n'), entry('0', 'a', 'x')),
      /damaged/,
    ],
    ['a name of 100 kB', () => archive(entry('L', 'l', 'n'.repeat(100_000)), entry('0', 'a', 'x')), /too long/],
    [
      'a path of 4 kB',
      () => archive(entry('L', 'l', 'n/'.repeat(2_000)), entry('0', 'a', 'x')),
      /longer than 1024 bytes/,
    ],
    [
      'more bytes than are allowed',
      () => gzipSync(archive(entry('0', 'a', 'x'.repeat(600_000)))),
      /larger than 500000/,
    ],
    ['no file', () => archive(entry('5', 'folder')), /no file/],
    ['half a header', () => entry('0', 'a', 'x').subarray(0, 700), /too early/],
    ['half a gzip stream', () => gzipSync(archive(entry('0', 'a', 'x'))).subarray(0, 40), /decompressed|too early/],
  ]
  for (const [what, make, why] of refused) {
    it(`with ${what} is refused`, () => expect(list(make())).rejects.toThrow(why))
  }

  it('of nothing but folders is read no further than its files could be', async () => {
    const folders = Buffer.concat(Array.from({ length: 2_048 }, () => entry('5', 'folder')))
    const bomb = gzipSync(Buffer.concat(Array.from({ length: 70 }, () => folders)))
    expect(bomb.length).toBeLessThan(1_000_000)
    await expect(list(bomb)).rejects.toThrow(/larger than 68108864 bytes/)
  })
})
