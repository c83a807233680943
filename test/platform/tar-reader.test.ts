// Archives as programs write them, and as long and as costly as somebody could make them.
import { expect, it } from 'vitest'
import { ByteReader } from '../../src/platform/byte-reader.ts'
import { BadArchive, tarEnd, tarHeader, tarPadding } from '../../src/platform/tar.ts'
import { plainName, readArchive } from '../../src/platform/tar-reader.ts'
import { counted, takesLinearSteps } from '../helpers/steps/steps.ts'

type TarReader = typeof import('../../src/platform/tar-reader.ts')
const counting = await counted<TarReader>('src/platform/tar-reader.ts')

const file = tarHeader({ kind: 'file', path: 'short', mode: 0o644, size: 0 })

/** A header of another kind, with its sum. */
function flagged(flag: string, content: Buffer): Buffer {
  const block = tarHeader({ kind: 'file', path: 'header', mode: 0o644, size: content.length })
  block.write(flag, 156, 'latin1')
  const sum = block.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 32 : byte), 0)
  block.write(sum.toString(8).padStart(6, '0'), 148, 'latin1')
  return Buffer.concat([block, content, tarPadding(content.length)])
}

function record(key: string, value: string): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`)
  let length = rest
  while (rest + String(length).length !== length) length = rest + String(length).length
  return Buffer.from(`${length} ${key}=${value}\n`)
}

async function pathsOf(...blocks: Buffer[]): Promise<string[]> {
  async function* whole() {
    yield Buffer.concat([...blocks, tarEnd])
  }
  const paths: string[] = []
  for await (const { path } of readArchive(new ByteReader(whole()))) paths.push(path)
  return paths
}

it('leaves out what programs write around a name, and nothing else', () => {
  expect(['./a', '././/a/', 'a///', './', '.', '/', '/a', 'a/./b', '../a', './/', ''].map(plainName)).toEqual([
    'a',
    'a',
    'a',
    '',
    '.',
    '',
    '/a',
    'a/./b',
    '../a',
    '',
    '',
  ])
})

it('reads a name in linear steps', async () => {
  await takesLinearSteps(1_000, (size) => counting.plainName(`a${'/'.repeat(size)}b`))
  await takesLinearSteps(1_000, (size) => counting.plainName(`${'./'.repeat(size)}b${'./'.repeat(size)}b`))
})

it('refuses names and targets that are longer than any system has them', async () => {
  const hostile = `a${'/'.repeat(60_000)}b`
  const longest = 'a/'.repeat(2_000)
  expect(await pathsOf(flagged('L', Buffer.from(`${longest}\0`)), file)).toEqual([longest.slice(0, -1)])
  expect(await pathsOf(flagged('x', record('path', longest)), file)).toEqual([longest.slice(0, -1)])
  for (const header of [
    flagged('L', Buffer.from(hostile)),
    flagged('K', Buffer.from(hostile)),
    flagged('x', record('path', hostile)),
    flagged('x', record('linkpath', hostile)),
  ]) {
    const refused = await pathsOf(header, file).catch((error) => error)
    expect(refused).toBeInstanceOf(BadArchive)
    expect(refused.message).toContain('too long')
  }
})

it('refuses more attributes than the files of an archive have', async () => {
  const one = record('a', '')
  const header = flagged('x', Buffer.alloc(one.length * 10_000, one))
  const files = (count: number) => Array.from({ length: count }, () => [header, file]).flat()
  expect(await pathsOf(...files(100))).toHaveLength(100)
  await expect(pathsOf(...files(101))).rejects.toThrow('too many attributes')
})

it('refuses more folders and headers of names than the files of an archive have', async () => {
  const others = ['5', 'L', 'x', 'g'].map((flag) => flagged(flag, Buffer.alloc(0)))
  const of = (count: number) => Buffer.alloc(count * others[0]!.length, Buffer.concat(others))
  expect(await pathsOf(of(1_000), file)).toHaveLength(251)
  await expect(pathsOf(of(200_001), file)).rejects.toThrow('too many folders')
})
