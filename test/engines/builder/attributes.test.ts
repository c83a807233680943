import { expect, test } from 'vitest'
import { namesLfs } from '../../../src/engines/builder/source/lfs.ts'
import { counted, takesLinearSteps } from '../../helpers/steps/steps.ts'

const counting = await counted<typeof import('../../../src/engines/builder/source/lfs.ts')>(
  'src/engines/builder/source/lfs.ts',
)

test('a filter of Git LFS is found in attributes, unless it is commented out', () => {
  for (const text of ['*.png filter=lfs', '# all\r\n*.png diff=lfs filter=lfs -text\r\n', '\n\na filter=lfs']) {
    expect(namesLfs(text)).toBe(true)
  }
  for (const text of ['', '# *.png filter=lfs', '*.png # filter=lfs', '*.png filter=lfsx', '*.png nofilter=lfs']) {
    expect(namesLfs(text)).toBe(false)
  }
})

test('attributes are searched in linear steps, whatever ends their lines', async () => {
  await takesLinearSteps(1_000, (size) => {
    for (const end of ['\r', '\u2028', '\n', ' ']) counting.namesLfs(end.repeat(size))
  })
})
