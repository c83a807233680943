import { describe, expect, test } from 'vitest'
import { credentialsOf, isAnyOf } from '../../src/platform/site-rules/credentials.ts'
import { parseHeaders } from '../../src/platform/site-rules/header-rules.ts'
import { applyRedirects, parseRedirects } from '../../src/platform/site-rules/redirects.ts'
import { counted, stepsOf, takesLinearSteps } from '../helpers/steps/steps.ts'

type HeaderRules = typeof import('../../src/platform/site-rules/header-rules.ts')
type Redirects = typeof import('../../src/platform/site-rules/redirects.ts')
const counting = {
  ...(await counted<HeaderRules>('src/platform/site-rules/header-rules.ts')),
  ...(await counted<Redirects>('src/platform/site-rules/redirects.ts')),
}

const long = 6_000
const paths = { deep: '/a'.repeat(long / 2), wide: `/${'\xe9'.repeat(long)}`, short: '/p' }

/** A request is read once, or ten times if rules redirect to the same path, however many rules there are. */
async function expectOneReading(work: (lines: number) => unknown): Promise<void> {
  const [one, many] = [await stepsOf(() => work(1)), await stepsOf(() => work(1_000))]
  expect(many).toBeLessThan(12 * one)
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
  ])('%s', async (_name, line, path, query, accepted) => {
    const one = rulesOf(line, 1)
    const many = rulesOf(line, 1_000)
    await expectOneReading((count) => counting.applyRedirects(count === 1 ? one : many, path, query, accepted))
  })

  test('the headers of a deep path', async () => {
    const [one, many] = [1, 1_000].map((count) => parseHeaders('/*\n  a: b\n'.repeat(count)).blocks)
    await expectOneReading((count) => counting.matchingBlocks(count === 1 ? one! : many!, paths.deep))
  })
})

test('a line of blanks is read in linear steps', async () => {
  const read = (size: number) => counting.parseHeaders(`/*\n  a:${' '.repeat(size)}\u00e9`)
  expect(read(1_000).notes).toHaveLength(1)
  await takesLinearSteps(1_000, read)
})

test('a line of comments is read in linear steps, whatever else ends a line', async () => {
  await takesLinearSteps(1_000, (size) => {
    for (const end of ['\r', '\u2028']) counting.parseRedirects(`/a /b${' #'.repeat(size)}${end}x`)
  })
})

test('a rule of many languages is read in linear steps', async () => {
  const read = (size: number) => counting.parseRedirects(`/a /b 301${' Language=a'.repeat(size)}`)
  expect(read(1_000).notes).toEqual([])
  await takesLinearSteps(300, read)
})

test('a site has a thousand passwords at most, and what is beyond them stays closed', () => {
  const { blocks, notes } = parseHeaders(`/a\n  Basic-Auth: ${'a:b '.repeat(1_000)}\n/b\n  Basic-Auth: c:d e:f`)
  expect(notes).toEqual([{ line: 4, text: 'a site has at most 1000 passwords', protects: true }])
  const opens = (path: string, given: string) => isAnyOf(credentialsOf(blocks, [path])!, given)
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

describe('what a rule of _redirects may ask for', () => {
  const noteOf = (text: string) => parseRedirects(text).notes.map(({ text }) => text)

  test('is a bounded number of languages, whatever they are written as', async () => {
    const tags = Array.from({ length: 127_000 }, (_, n) => `x${n}`)
    const spellings = [`Language=${tags.join(',')}`, tags.map((tag) => `Language=${tag}`).join(' ')]
    for (const conditions of spellings) {
      expect(noteOf(`/* /x 302 ${conditions}`)).toEqual(['a rule has at most 200 languages'])
    }
    expect(noteOf(`/* /x 302 Language=${tags.slice(0, 200).join(',')}`)).toEqual([])
  })

  test('is a bounded number of parameters', () => {
    expect(noteOf(`/a ${'x=1 '.repeat(21)}/b`)).toEqual(['a rule has at most 20 query parameters'])
    expect(noteOf(`/a ${'x=1 '.repeat(20)}/b`)).toEqual([])
  })

  test('costs a request the same however many languages there are, and however odd its choice is', async () => {
    const rules = (count: number) => {
      const tags = Array.from({ length: count }, (_, n) => `x${n}`)
      return counting.parseRedirects(`/* /x 302 Language=${tags.join(',')}`).rules
    }
    const [few, many] = [rules(1), rules(200)]
    const plain = await stepsOf(() => counting.applyRedirects(few, '/a', '', 'zz'))
    expect(await stepsOf(() => counting.applyRedirects(many, '/a', '', 'zz'))).toBe(plain)
    const odd = [`zz${'-a'.repeat(4_000)}`, `zz${';a'.repeat(4_000)}`]
    for (const accepted of odd) {
      expect(await stepsOf(() => counting.applyRedirects(many, '/a', '', accepted))).toBeLessThan(
        plain + 6 * accepted.length,
      )
    }
  })

  test('is met by a kind of the language, and by no other that begins alike', () => {
    const { rules } = parseRedirects('/* /x 302 Language=en,zh-hant')
    const fits = (accepted: string) => applyRedirects(rules, '/a', '', accepted) !== null
    expect(['en', 'en-GB', 'EN-gb-oed', 'zh-Hant-TW'].map(fits)).toEqual([true, true, true, true])
    expect(['eng', 'e', 'zh', 'zh-Hans', ''].map(fits)).toEqual([false, false, false, false, false])
  })
})
