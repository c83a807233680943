import { describe, expect, test } from 'vitest'
import { credentialsOf, holdsOne } from '../../src/platform/site-rules/credentials.ts'
import { matchingBlocks, parseHeaders } from '../../src/platform/site-rules/header-rules.ts'
import { applyRedirects, parseRedirects } from '../../src/platform/site-rules/redirects.ts'
import { takesLinearTime } from '../helpers/linear-time.ts'

const long = 15_000
const paths = { deep: '/a'.repeat(long / 2), wide: `/${'\xe9'.repeat(long)}`, short: '/p' }

/** In milliseconds of the processor, the least of three: other programs cost time too. */
function costOf(work: () => unknown): number {
  const costs = [1, 2, 3].map(() => {
    const start = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(start)
    return (user + system) / 1000
  })
  return Math.min(...costs)
}

/** What a request says is read once, however many rules look at it. */
function expectOneReading(work: (lines: number) => unknown): void {
  expect(costOf(() => work(1_000))).toBeLessThan(
    Math.max(
      10,
      costOf(() => work(1)),
    ) * 8,
  )
}

describe('a thousand rules cost one visitor of the edge little more than one, for', () => {
  const rulesOf = (line: string, count: number) => parseRedirects(`${line}\n`.repeat(count)).rules
  const query = `?${'a&'.repeat(long / 2)}`

  test.each([
    ['a long query', '/* z=:z /x', paths.short, query, undefined],
    ['a long query of which something is left', '/* b=:b /:splat', paths.short, `${query}b=1`, undefined],
    ['many languages', '/* /x 302 Language=zz', paths.short, '', ';'.repeat(long)],
    ['a deep path', '/* z=:z /x', paths.deep, '', undefined],
    ['a path that leads to itself', '/* /:splat', paths.wide, '', undefined],
  ])('%s', (_name, line, path, query, accepted) => {
    const one = rulesOf(line, 1)
    const many = rulesOf(line, 1_000)
    expectOneReading((count) => applyRedirects(count === 1 ? one : many, path, query, accepted))
  })

  test('the headers of a deep path', () => {
    const [one, many] = [1, 1_000].map((count) => parseHeaders('/*\n  a: b\n'.repeat(count)).blocks)
    expectOneReading((count) => matchingBlocks(count === 1 ? one! : many!, paths.deep))
  })
})

test('a line of blanks is read in linear time', () => {
  takesLinearTime({ small: 5_000, large: 40_000 }, (size) => {
    const { notes } = parseHeaders(`/*\n  a:${' '.repeat(size)}\u00e9`)
    expect(notes).toHaveLength(1)
  })
})

test('a line of comments is read in linear time, whatever else ends a line', () => {
  takesLinearTime({ small: 5_000, large: 40_000 }, (size) => {
    for (const end of ['\r', '\u2028']) parseRedirects(`/a /b${' #'.repeat(size)}${end}x`)
  })
})

test('a rule of many languages is read in linear time', () => {
  takesLinearTime({ small: 2_900, large: 23_200 }, (size) => {
    expect(parseRedirects(`/a /b 301${' Language=a'.repeat(size)}`).notes).toEqual([])
  })
})

test('a site has a thousand passwords at most, and what is beyond them stays closed', () => {
  const { blocks, notes } = parseHeaders(`/a\n  Basic-Auth: ${'a:b '.repeat(1_000)}\n/b\n  Basic-Auth: c:d e:f`)
  expect(notes).toEqual([{ line: 4, text: 'a site has at most 1000 passwords', protects: true }])
  const opens = (path: string, given: string) => holdsOne(credentialsOf(blocks, [path])!, given)
  expect([opens('/a', 'a:b'), opens('/b', 'c:d'), opens('/b', '')]).toEqual([true, false, false])
})

test('a target repeats what was asked for a few times at most', () => {
  const { rules, notes } = parseRedirects(`/x/* /${':splat'.repeat(21)}\n/y/* /${':splat'.repeat(20)} 200`)
  expect(rules).toHaveLength(1)
  expect(notes).toEqual([{ line: 1, text: 'a target has at most 20 placeholders' }])
})

test('the parameters that a rule asks for are taken away, the first value of each counts', () => {
  const { rules } = parseRedirects('/shop id=:id /item/:id 302\n/shop a=1 /all')
  expect(applyRedirects(rules, '/shop', '?&x=1&id=7&&id=8&i%64=9&y')).toMatchObject({ location: '/item/7?x=1&y' })
  expect(applyRedirects(rules, '/shop', '?id=&a=1')).toMatchObject({ location: '/all?id=' })
  expect(applyRedirects(rules, '/shop', '?a=2&a=1')).toBeNull()
})
