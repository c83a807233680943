import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CountingRegExp } from './regex.ts'
import { counted, stepsOf, takesLinearSteps } from './steps.ts'

const quadratic = await counted<typeof import('./quadratic.ts')>('test/helpers/steps/quadratic.ts')
const numbers = (size: number) => Array.from({ length: size }, (_, index) => index)

test.each([
  ['a regular expression that restarts at every index', quadratic.byExpression],
  ['a regular expression that backtracks', quadratic.byChoices],
  ['a nested loop', quadratic.byLoop],
  ['a search in a callback', (size: number) => quadratic.byCallback(numbers(size))],
  ['copying an array for each item', quadratic.bySpread],
  ['searching a string for a missing character', quadratic.bySearch],
  ['copying a buffer for each byte', quadratic.byJoin],
])('%s is reported as quadratic', async (_what, work) => {
  await expect(takesLinearSteps(40, work)).rejects.toThrow(/to be less than|more than \d+ steps/)
})

test('work outside of instrumented modules is refused', async () => {
  await expect(stepsOf(() => 'a'.repeat(9))).rejects.toThrow('instrumented')
})

test('the count is the same in every run', async () => {
  const counts = new Set<number>()
  for (let i = 0; i < 5; i++) counts.add(await stepsOf(() => quadratic.byExpression(100)))
  expect([...counts]).toEqual([expect.any(Number)])
})

test('regular expressions match what V8 matches', async () => {
  const characters = ['a', 'b', '.', '\\w', '[ab]', '[^a]', '[\\]b-]', '\\n', '\\u0061', '\\b', '\\B', '^', '$']
  const { source } = fc.letrec<{ source: string; item: string }>((tie) => ({
    source: fc.array(tie('item'), { minLength: 1, maxLength: 4 }).map((items) => items.join('')),
    item: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(...characters),
      fc
        .tuple(fc.constantFrom('a', 'b', '.', '[ab]'), fc.constantFrom('*', '+', '?', '*?', '{1,3}', '{2,}', '{2}?'))
        .map((it) => it.join('')),
      fc.tuple(tie('source'), tie('source')).map(([one, other]) => `(?:${one}|${other})`),
      fc.tuple(tie('source'), fc.constantFrom('', '*', '+?', '{0,2}')).map(([one, often]) => `(${one})${often}`),
      fc.tuple(fc.constantFrom('=', '!'), tie('source')).map(([kind, one]) => `(?${kind}${one})`),
    ),
  }))
  const text = fc
    .array(fc.constantFrom('a', 'b', 'A', '\n', ' ', '\u{1f600}'), { maxLength: 10 })
    .map((it) => it.join(''))
  const flags = fc.constantFrom('', 'g', 'i', 'm', 's', 'u', 'y', 'gimsu')
  await stepsOf(() =>
    fc.assert(
      fc.property(source, flags, text, (source, flags, text) => {
        // Throws if the match differs.
        const expression = new CountingRegExp(source, flags)
        text.replace(expression, '')
        text.split(expression)
      }),
      { numRuns: 300 },
    ),
  )
})
