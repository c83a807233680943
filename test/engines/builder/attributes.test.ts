import { expect, test } from 'vitest'
import { namesLfs } from '../../../src/engines/builder/lfs.ts'
import { takesLinearTime } from '../../helpers/linear-time.ts'

test('a filter of Git LFS is found in attributes, unless it is commented out', () => {
  for (const text of ['*.png filter=lfs', '# all\r\n*.png diff=lfs filter=lfs -text\r\n', '\n\na filter=lfs']) {
    expect(namesLfs(text)).toBe(true)
  }
  for (const text of ['', '# *.png filter=lfs', '*.png # filter=lfs', '*.png filter=lfsx', '*.png nofilter=lfs']) {
    expect(namesLfs(text)).toBe(false)
  }
})

test('attributes are searched in linear time, whatever ends their lines', () => {
  takesLinearTime({ small: 8_000, large: 64_000 }, (size) => {
    for (const end of ['\r', '\u2028', '\n', ' ']) namesLfs(end.repeat(size))
  })
})
