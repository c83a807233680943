// Archives with as many attributes, folders and headers as the reader takes, and one more.
import { expect, it } from 'vitest'
import { file, flagged, pathsOf, record } from './tars.ts'

it('refuses more attributes than the files of an archive have', async () => {
  const one = record('a', '')
  const header = flagged('x', Buffer.alloc(one.length * 1_000, one))
  const files = (count: number) => Array.from({ length: count }, () => [header, file]).flat()
  expect(await pathsOf(...files(1_000))).toHaveLength(1_000)
  await expect(pathsOf(...files(1_001))).rejects.toThrow('too many attributes')
})

it('refuses more folders and headers of names than the files of an archive have', async () => {
  const others = ['5', 'L', 'x', 'g'].map((flag) => flagged(flag, Buffer.alloc(0)))
  const of = (count: number) => Buffer.alloc(count * others[0]!.length, Buffer.concat(others))
  expect(await pathsOf(of(1_000), file)).toHaveLength(251)
  await expect(pathsOf(of(200_001), file)).rejects.toThrow('too many folders')
})
