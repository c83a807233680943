// Archives as programs write them, and as long and as costly as somebody could make them.
import { expect, it } from 'vitest'
import { BadArchive } from '../../src/platform/files/tar.ts'
import { plainName } from '../../src/platform/files/tar-reader.ts'
import { counted, takesLinearSteps } from '../helpers/steps/steps.ts'
import { file, flagged, pathsOf, record } from './tars.ts'

type TarReader = typeof import('../../src/platform/files/tar-reader.ts')
const counting = await counted<TarReader>('src/platform/files/tar-reader.ts')

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
