import { expect, test } from 'vitest'
import { parseInPieces, RepeatedKey } from '../../src/platform/http/json-pieces.ts'
import { counted, stepsOf } from '../helpers/steps/steps.ts'

type JsonPieces = typeof import('../../src/platform/http/json-pieces.ts')
const counting = await counted<JsonPieces>('src/platform/http/json-pieces.ts')

const parse = (text: string) => parseInPieces(Buffer.from(text), (piece) => JSON.parse(piece.toString()))

const item = (n: number) => ({
  path: `a "${n}" \\ , ] } : é`,
  size: n,
  list: [1, [2, { a: null }]],
  text: 'x'.repeat(n % 90),
})
const items = Array.from({ length: 1_500 }, (_, n) => item(n))
const few = items.slice(0, 400)
const long = 'y'.repeat(200_000)

test('what comes in pieces is what comes at once', async () => {
  for (const value of [
    items,
    { project: 'a', source: { files: items, prebuilt: true }, ref: 'b' },
    { source: { files: [long, items[0], long, long, items[1]] }, empty: {}, none: [] },
    [items, items.slice(0, 10), [[few]], { a: { b: { c: { d: few } } } }],
    { [long]: long },
    long,
    Array.from({ length: 90_000 }, (_, n) => n),
  ]) {
    for (const indent of [undefined, 2]) {
      const text = JSON.stringify(value, null, indent)
      // Compared as text: the difference of two long lists takes minutes to print.
      expect(JSON.stringify(await parse(` \n${text}\t `)) === JSON.stringify(value)).toBe(true)
    }
  }
  expect(await parse(`[${' '.repeat(100_000)}]`)).toEqual([])
  expect(await parse(`{${' '.repeat(100_000)}}`)).toEqual({})
  const own = (await parse(`{"a":"${long}","__proto__":{"b":1}}`)) as object
  expect(Object.keys(own)).toEqual(['a', '__proto__'])
  expect(Object.getPrototypeOf(own)).toBe(Object.prototype)
})

test('what is no JSON at once is none in pieces', async () => {
  const text = JSON.stringify({ source: { files: items }, a: 1 })
  const middle = text.indexOf('},{', text.length / 2) + 1
  const at = (index: number, other: string, cut = 0) => text.slice(0, index) + other + text.slice(index + cut)
  const broken = [
    ...[at(middle, ','), at(middle, '', 1), at(middle, ']'), at(middle, '['), at(middle, '"'), at(middle, ':', 1)],
    ...[at(middle, '}', 1), at(middle, '{'), at(middle, ',]', 1), at(middle, 'null')],
    ...[`${text}]`, `${text},`, `${text}{}`, text.slice(0, -1), `${text.slice(0, -1)}]`, `,${text}`, `]${text}[`],
    ...[`[${long}]`, `["${long}",]`, `[,"${long}"]`, `["${long}",,1]`, `{"${long}"}`, `{"a":"${long}",}`],
    ...[
      `{"${long}":}`,
      `{1:"${long}"}`,
      `{"a" "${long}"}`,
      `{"a":"${long}"]`,
      `["${long}"}`,
      `[${'['.repeat(200_000)}`,
    ],
    ...[text.replace(/\]\}/, ',]}'), text.replace('[', '[,'), text.replace('"a":1', '"a":1,')],
  ]
  for (const one of broken) {
    expect(() => JSON.parse(one)).toThrow(SyntaxError)
    await expect(parse(one), one.slice(0, 40)).rejects.toThrow(SyntaxError)
  }
})

test('a field that is there twice is found, and a body of too many parts, or too deep ones, is refused', async () => {
  const deep = `[[[${'['.repeat(200_000)}${']'.repeat(200_000)}]]]`
  await expect(parse(deep)).rejects.toMatchObject({ code: 'validation_failed' })
  await expect(parse(`{"a":"${long}","a":1}`)).rejects.toThrow(RepeatedKey)
  await expect(parse(`[${'1,'.repeat(1_000_000)}1]`)).rejects.toMatchObject({ code: 'validation_failed' })
  const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`field${n}`, n]))
  expect(await parse(JSON.stringify(fields(10_000)))).toEqual(fields(10_000))
  await expect(parse(JSON.stringify(fields(10_001)))).rejects.toMatchObject({ code: 'validation_failed' })
})

test('a long text of quotes takes hardly more steps than parsing it at once', async () => {
  const raw = Buffer.from(`["${'\\"'.repeat(64 << 10)}"]`)
  const steps = await stepsOf(() => counting.parseInPieces(raw, (piece) => JSON.parse(piece.toString())))
  // Decoding and parsing it take two steps per octet.
  expect(steps).toBeLessThan(3.5 * raw.length)
})
