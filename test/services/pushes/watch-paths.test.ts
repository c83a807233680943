import { describe, expect, test } from 'vitest'
import { changesOf, matchesAny } from '../../../src/services/pushes/watch-paths.ts'
import { counted, stepsOf, takesLinearSteps } from '../../helpers/steps/steps.ts'

type WatchPaths = typeof import('../../../src/services/pushes/watch-paths.ts')
const counting = await counted<WatchPaths>('src/services/pushes/watch-paths.ts')

describe('a file', () => {
  test.each([
    [['apps/web/**'], 'apps/web/src/page.tsx', true],
    [['apps/web/**'], 'apps/website/page.tsx', false],
    [['apps/web'], 'apps/web/src/page.tsx', true],
    [['apps/web/'], 'apps/web/src/page.tsx', true],
    [['./apps/web'], 'apps/web/page.tsx', true],
    [['package.json'], 'package.json', true],
    [['package.json'], 'apps/web/package.json', false],
    [['src/*'], 'src/a.ts', true],
    [['src/*'], 'src/deep/a.ts', false],
    [['*.md'], 'README.md', true],
    [['*.md'], 'docs/README.md', false],
    [['**/*.md'], 'README.md', true],
    [['**/*.md'], 'a/b/c.md', true],
    [['**'], 'a/b/c', true],
    [['a/**/z'], 'a/z', true],
    [['a/**/z'], 'a/b/c/z', true],
    [['app/[id]/page.tsx'], 'app/[id]/page.tsx', true],
    [['app/[id]/page.tsx'], 'app/i/page.tsx', false],
    [['a*b*c'], 'a-b-b-c', true],
    [['a*b*c'], 'a-c-b', false],
    [['aa*aa'], 'aaa', false],
    [['!docs/**'], 'src/a.ts', true],
    [['!docs/**'], 'docs/a.md', false],
    [['apps/**', '!apps/docs/**'], 'apps/docs/a.md', false],
    [['apps/**', '!apps/docs/**', 'apps/docs/api/**'], 'apps/docs/api/a.md', true],
    [['apps/**', '!apps/docs/**'], 'README.md', false],
    [['.*'], '.gitignore', true],
    [['a.b'], 'aXb', false],
    [['Apps/**'], 'apps/a', false],
  ])('with %j, %s is watched: %s', (patterns, file, wanted) => expect(matchesAny(patterns, [file])).toBe(wanted))

  test('that is made to be hard takes no more steps', async () => {
    const patterns = [`${'*a'.repeat(99)}b`, `${'**/'.repeat(60)}b`, `*${'a'.repeat(190)}b`]
    const look = (size: number) => counting.matchesAny(patterns, ['a'.repeat(size), 'a/'.repeat(size / 4)])
    expect(look(2_000)).toBe(false)
    await takesLinearSteps(2_000, look)
  })
})

test('a push of many files, seen by many patterns, is looked through in a limited number of steps, and built', async () => {
  const patterns = Array.from({ length: 50 }, () => `!${'**/a*/'.repeat(32)}x*`)
  const files = Array.from({ length: 299 }, () => 'a/'.repeat(80))
  expect(matchesAny([...patterns, 'docs/**'], files)).toBe(true)
  expect(matchesAny(patterns.slice(0, 2), files.slice(0, 2))).toBe(true)
  expect(matchesAny([...patterns.slice(0, 2), 'docs/**'], files.slice(0, 2))).toBe(false)
  expect(await stepsOf(() => counting.matchesAny([...patterns, 'docs/**'], files))).toBeLessThan(1_000_000)
})

const hash = (digit: string) => digit.repeat(40)
const push = (fields: object) => ({
  ref: 'refs/heads/main',
  after: hash('b'),
  before: hash('a'),
  commits: [{ added: ['a'], modified: ['b', 'c'], removed: [] }, { removed: ['a', 'd'] }],
  ...fields,
})

describe('the files of a push', () => {
  test('are those of all its commits', () => {
    expect(changesOf(push({}))).toEqual({ before: hash('a'), files: ['a', 'b', 'c', 'd'] })
    expect(changesOf(push({ total_commits_count: 2, forced: false }))?.files).toHaveLength(4)
  })

  const commit = { added: ['a'] }
  test.each([
    ['no base', { before: undefined }],
    ['a new branch', { before: hash('0') }],
    ['a new branch that says so', { created: true }],
    ['a base that is no commit', { before: 'main' }],
    ['a forced push', { forced: true }],
    ['no commits', { commits: [] }],
    ['commits that are null', { commits: null }],
    ['commits of another form', { commits: 'many' }],
    ['a commit that is null', { commits: [commit, null] }],
    ['a commit without files', { commits: [commit, { id: 'x' }] }],
    ['files that are numbers', { commits: [{ added: [1] }] }],
    ['as many commits as GitHub sends', { commits: Array.from({ length: 20 }, () => commit) }],
    ['more commits than GitLab sends', { commits: [commit], total_commits_count: 21 }],
    ['more commits than Gitea sends', { commits: [commit], total_commits: 6 }],
    ['more files than a host may list', { commits: [{ added: Array.from({ length: 300 }, (_, i) => `f${i}`) }] }],
    ['an empty commit', { commits: [{ added: [], modified: [], removed: [] }] }],
    ['very long paths', { commits: [{ added: ['a'.repeat(50_001)] }] }],
  ])('are not known with %s', (_what, fields) => expect(changesOf(push(fields))).toBeNull())
})
