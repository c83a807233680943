import { expect, test } from 'vitest'
import { createLineCleaner, maxLineLength } from '../../src/platform/observe/log-lines.ts'
import { counted, takesLinearSteps } from '../helpers/steps/steps.ts'

type LogLines = typeof import('../../src/platform/observe/log-lines.ts')
const counting = await counted<LogLines>('src/platform/observe/log-lines.ts')

test('escapes of a terminal, what it would overwrite and NUL are removed', () => {
  const clean = createLineCleaner([])
  expect(clean('10 %\r\u001b[1;31mred\u001b[0m \u001b]8;;https://a.test/?b=c\u0007link\u001b]8;;\u001b\\ \0end')).toBe(
    'red link end',
  )
  expect(clean('\u001b]0;title\u009cshown \u009b2Kagain\u001b[?25l\u001b(B')).toBe('shown again')
})

test('every secret is masked, also those that overlap or begin with each other', () => {
  const clean = createLineCleaner(['abcd', 'abcdefgh', 'abxy', 'defghi', 'first\nsecond line', 'no'])
  expect(clean('abcd abcdefg abcdefgh abxy ab no')).toBe('*** ***efg *** *** ab no')
  expect(clean('abcdefghi abcdabxy')).toBe('*** ******')
  expect(clean('first, second lines, second line')).toBe('***, ***s, ***')
})

test('a secret is not shown by the cut of a long line', () => {
  const secret = `begin${'s'.repeat(2 * maxLineLength)}`
  const clean = createLineCleaner([secret])
  for (const before of [0, 10, maxLineLength - 3]) {
    const line = clean(`${'-'.repeat(before)}${secret}${'+'.repeat(maxLineLength)}`)
    expect(line).toBe(`${'-'.repeat(before)}***…`)
  }
})

test('a line costs steps in proportion to its length, with any number of secrets', async () => {
  for (const count of [1, 5_000]) {
    const clean = counting.createLineCleaner(Array.from({ length: count }, (_, i) => `${'a'.repeat(i % 900)}aaaa${i}`))
    await takesLinearSteps(1_000, (size) => clean('a'.repeat(size)))
    await takesLinearSteps(1_000, (size) => clean('aaaa1'.repeat(size / 5)))
  }
})

test('where a line and the secrets were made for each other, the rest of the line is masked', async () => {
  const begins = Array.from({ length: 360 }, (_, i) => 'a'.repeat(i + 4)).join('\n')
  const clean = counting.createLineCleaner([begins, 'a'.repeat(3_000), `${'a'.repeat(2_000)}b`])
  for (const size of [1_000, 8_000]) expect(clean(`begin ${'a'.repeat(size)}`)).toMatch(/^begin \*+…?$/)
  await takesLinearSteps(1_000, (size) => clean(`begin ${'a'.repeat(size)}`))
})
