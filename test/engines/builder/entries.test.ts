import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BuildFailure } from '../../../src/engines/builder/explain/failure.ts'
import { readPacked } from '../../../src/engines/builder/tree/entries.ts'
import { entryKinds } from '../../../src/engines/builder/tree/packer.ts'
import { ByteReader, TruncatedStream } from '../../../src/platform/files/byte-reader.ts'
import {
  endOf,
  file,
  folder,
  limits,
  link,
  packed,
  packedEnd,
  packedOutput,
  readAll,
  type Seen,
  streamOf,
  whole,
} from './packed.ts'

const plainName = fc.stringMatching(/^[a-zé☃ ._-]{1,12}$/).filter((name) => name !== '.' && name !== '..')
const plainPath = fc.array(plainName, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'))
const content = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))

const anEntry: fc.Arbitrary<{ bytes: Buffer; seen: Seen }> = fc.oneof(
  plainPath.map((path) => ({ bytes: folder(path), seen: { kind: 'directory', path } as Seen })),
  fc
    .tuple(plainPath, plainPath)
    .map(([path, target]) => ({ bytes: link(path, target), seen: { kind: 'link', path, target } as Seen })),
  fc.tuple(plainPath, content, fc.boolean()).map(([path, bytes, executable]) => ({
    bytes: packed(executable ? entryKinds.executable : entryKinds.file, path, bytes),
    seen: { kind: 'file', path, executable, content: bytes.toString('latin1') } as Seen,
  })),
)

/** Cuts at these places, whatever they are. */
function split(bytes: Buffer, cuts: number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % bytes.length))].sort((a, b) => a - b)
  return [0, ...places].map((from, index) => bytes.subarray(from, places[index] ?? bytes.length))
}

describe('a stream of the packer', () => {
  test('is read the same into whatever chunks it is split', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anEntry, { maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 30 }),
        async (entries, cuts) => {
          const bytes = whole(...entries.map((entry) => entry.bytes))
          const { output, entries: seen } = await readAll(streamOf(...split(bytes, cuts)))
          expect(output).toEqual({ path: 'dist', inside: '/build/dist' })
          expect(seen).toEqual(entries.map((entry) => entry.seen))
        },
      ),
    )
  })

  test('is read byte by byte', async () => {
    const bytes = whole(folder('a'), file('a/b', 'content'), link('c', 'a/b'))
    const { entries } = await readAll(streamOf(...Array.from(bytes, (byte) => Buffer.of(byte))))
    expect(entries).toEqual([
      { kind: 'directory', path: 'a' },
      { kind: 'file', path: 'a/b', executable: false, content: 'content' },
      { kind: 'link', path: 'c', target: 'a/b' },
    ])
  })

  test('skips content that nobody takes', async () => {
    const bytes = whole(file('a', 'aaaa'), file('b', 'b'.repeat(5000)), file('c', 'cc'))
    const { entries } = await readPacked(streamOf(...split(bytes, [40, 90, 3000])), limits)
    const seen: string[] = []
    for await (const entry of entries()) {
      seen.push(entry.path)
      if (entry.kind === 'file' && entry.path === 'c') expect((await entry.content.whole()).toString()).toBe('cc')
    }
    expect(seen).toEqual(['a', 'b', 'c'])
  })

  test('gives content as it comes to whoever wants it so', async () => {
    const bytes = whole(file('a', 'x'.repeat(5000)), file('b', 'b'))
    const { entries } = await readPacked(streamOf(...split(bytes, [1000, 2000, 3000])), limits)
    const sizes: number[] = []
    for await (const entry of entries()) {
      if (entry.kind !== 'file') continue
      let size = 0
      for await (const chunk of entry.content.stream()) size += chunk.length
      sizes.push(size)
    }
    expect(sizes).toEqual([5000, 1])
  })

  test('that tells of no output lists what was there instead', async () => {
    const { output } = await readAll(streamOf(packed(entryKinds.missing, '', 'src\0package.json'), packedEnd))
    expect(output).toEqual({ missing: ['src', 'package.json'] })
  })

  test('that refuses its output ends in output_unsafe with the reason', async () => {
    const end = await endOf(packed(entryKinds.refused, 'dist', 'leads out of the project'))
    expect(end).toMatchObject({ code: 'output_unsafe', message: expect.stringContaining('dist leads out of') })
  })
})

describe('a hostile stream', () => {
  const sample = whole(folder('a'), file('a/b', 'content'), link('c', 'a/b'), file('d', 'more'))

  test('cut at any place is TruncatedStream, never an end', async () => {
    for (let length = 0; length < sample.length; length++) {
      expect(await endOf(sample.subarray(0, length)), `cut at ${length}`).toBeInstanceOf(TruncatedStream)
    }
    expect(await endOf(sample)).toBeNull()
  })

  test('of random bytes ends in BuildFailure or TruncatedStream', async () => {
    const random = fc.uint8Array({ maxLength: 500 }).map((bytes) => Buffer.from(bytes))
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(Buffer.alloc(0), packedOutput, sample.subarray(0, 60)),
        random,
        async (start, rest) => {
          await endOf(Buffer.concat([start, rest]))
        },
      ),
      { numRuns: 300 },
    )
  })

  test('with any byte changed ends in BuildFailure, TruncatedStream or other entries, with plain paths only', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(sample.length - 1), fc.nat(255), async (at, byte) => {
        const bytes = Buffer.from(sample)
        bytes[at] = byte
        const result = await readAll(streamOf(bytes)).catch((error) => {
          if (error instanceof BuildFailure || error instanceof TruncatedStream) return null
          throw error
        })
        for (const { path } of result?.entries ?? []) {
          expect(path.split('/').some((part) => part === '' || part === '.' || part === '..')).toBe(false)
        }
      }),
      { numRuns: 300 },
    )
  })

  test.each([
    ['a name of 4 GiB', packed(entryKinds.file, 'a', '', { name: 0xffff_ffff })],
    ['a link target of an exabyte', packed(entryKinds.link, 'a', 'x', { size: 2n ** 60n })],
    ['a reason of an exabyte', packed(entryKinds.refused, 'a', 'x', { size: 2n ** 60n })],
    ['an unknown kind', packed(99, 'a')],
    ['the kind zero', packed(0, 'a')],
    ['a second output', packedOutput],
    ['the list of a missing output in the middle', packed(entryKinds.missing, 'a', 'x')],
  ])('with %s is TruncatedStream before anything of that size is held', async (_what, bytes) => {
    expect(await endOf(whole(bytes))).toBeInstanceOf(TruncatedStream)
  })

  test.each([
    ['an exabyte', 2n ** 60n],
    ['2^64 - 1 bytes', 2n ** 64n - 1n],
    ['one byte too many', BigInt(limits.bytes) + 1n],
  ])('with a file of %s is output_too_large before any of it is read', async (_what, size) => {
    const end = await endOf(whole(packed(entryKinds.file, 'a', 'x', { size })))
    expect(end).toMatchObject({ code: 'output_too_large' })
  })

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['its end', packedEnd],
    ['a file', file('a', 'x')],
    ['an output that announces a path of an exabyte', packed(entryKinds.output, 'dist', '/', { size: 2n ** 60n })],
    ['a missing output that announces a list of an exabyte', packed(entryKinds.missing, '', 'x', { size: 2n ** 60n })],
  ])('that begins with %s is TruncatedStream', async (_what, bytes) => {
    expect(await endOf(bytes)).toBeInstanceOf(TruncatedStream)
  })

  test.each<[string, string | Buffer]>([
    ['a parent at its start', '../etc/passwd'],
    ['a parent in the middle', 'a/../../b'],
    ['a parent at its end', 'a/..'],
    ['nothing but a parent', '..'],
    ['nothing but the folder itself', '.'],
    ['the folder itself in the middle', 'a/./b'],
    ['a root', '/etc/passwd'],
    ['no name', ''],
    ['an empty part', 'a//b'],
    ['a slash at its end', 'a/'],
    ['a NUL', 'a\0b'],
    ['a newline', 'a\nb'],
    ['an escape', 'a\x1b[2Jb'],
    ['a delete', 'a\x7fb'],
    ['bytes that are not UTF-8', Buffer.from([0x61, 0xff, 0xfe])],
    ['an overlong slash', Buffer.from([0x2e, 0x2e, 0xc0, 0xaf, 0x61])],
    ['half of a surrogate pair', Buffer.from([0xed, 0xa0, 0x80])],
    ['a part of 256 bytes', 'n'.repeat(256)],
    ['a part of 256 bytes in fewer characters', 'é'.repeat(128)],
    ['65 parts', Array(65).fill('d').join('/')],
    ['1,025 bytes', `${'n'.repeat(200)}/`.repeat(5) + 'n'.repeat(20)],
    ['60,000 bytes', 'n'.repeat(60_000)],
  ])('with a name of %s is output_unsafe, for every kind of entry', async (_what, name) => {
    for (const entry of [folder(name), file(name, 'x'), link(name, 'x')]) {
      const end = await endOf(whole(entry))
      expect(end).toMatchObject({ code: 'output_unsafe' })
      // The message goes into the database and a terminal.
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
      expect(end?.message).not.toMatch(/[\x00-\x1f\x7f\ufffd]/)
      expect(end?.message.length).toBeLessThan(500)
    }
  })

  test('takes names at their limits', async () => {
    const deep = Array(64).fill('d').join('/')
    const long = `${'n'.repeat(255)}/`.repeat(4).slice(0, 1022)
    const { entries } = await readAll(streamOf(whole(file('n'.repeat(255)), file(deep), file(long), file('...'))))
    expect(entries.map(({ path }) => path)).toEqual(['n'.repeat(255), deep, long, '...'])
  })

  test.each<[string, string | Buffer]>([
    ['is not UTF-8', Buffer.from([0xff])],
    ['has a NUL', 'a\0b'],
    ['is empty', ''],
  ])('with a link whose target %s is output_unsafe', async (_what, target) => {
    expect(await endOf(whole(link('a', target)))).toMatchObject({ code: 'output_unsafe' })
  })

  test('with more entries than allowed is output_too_large, whatever they are', async () => {
    const many = Array.from({ length: limits.entries }, (_, index) => folder(`d${index}`))
    expect(await endOf(whole(...many))).toBeNull()
    expect(await endOf(whole(...many, folder('last')))).toMatchObject({ code: 'output_too_large' })
    expect(await endOf(whole(...many, file('last')))).toMatchObject({ code: 'output_too_large' })
  })

  test('whose files are together larger than allowed is output_too_large', async () => {
    const half = Buffer.alloc(limits.bytes / 2)
    expect(await endOf(whole(file('a', half), file('b', half)))).toBeNull()
    const end = await endOf(whole(file('a', half), file('b', half), file('c', 'x')))
    expect(end).toMatchObject({ code: 'output_too_large' })
  })

  test('whose refusal has control characters shows them by their numbers', async () => {
    for (const bytes of [
      packed(entryKinds.refused, 'a\0b\n', 'cannot\0be\x1b[2J read'),
      whole(packed(entryKinds.refused, 'a\0b\n', 'cannot\0be\x1b[2J read')),
    ]) {
      const end = await endOf(bytes)
      expect(end).toMatchObject({ code: 'output_unsafe' })
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
      expect(end?.message).not.toMatch(/[\x00-\x1f\x7f]/)
    }
  })
})

describe('a piece up to a byte', () => {
  const piece = (chunks: string[], most: number) =>
    new ByteReader(streamOf(...chunks.map((text) => Buffer.from(text)))).until(0x0a, most)

  test('that is longer than allowed is an error, also where it came in one chunk', async () => {
    await expect(piece(['0123456789\n'], 5)).rejects.toThrow(TruncatedStream)
    await expect(piece([...'0123456789\n'], 5)).rejects.toThrow(TruncatedStream)
    expect((await piece(['01234\n'], 5))?.toString()).toBe('01234')
    expect((await piece([...'01234\n'], 5))?.toString()).toBe('01234')
  })

  test('that has no end is an error, and nothing at the end of the stream is none', async () => {
    await expect(piece(['abc'], 100)).rejects.toThrow(TruncatedStream)
    expect(await piece([], 100)).toBeUndefined()
  })
})
