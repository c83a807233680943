import { describe, expect, test } from 'vitest'
import { type PullRequestEvent, readPullRequestEvent } from '../../../src/services/pushes/pull-request-events.ts'

const sha = '4f2a9c1d0e5b6a7988c7d6e5f4a3b2c1d0e9f8a7'

/** As GitHub, Gitea and Forgejo send it, without what is not looked at. */
const gitHub = (action: string, request: object = {}, head: object = {}) => ({
  action,
  number: 7,
  pull_request: {
    number: 7,
    title: 'Fix the greeting',
    state: 'open',
    updated_at: '2026-01-01T12:00:00Z',
    head: { ref: 'greeting', sha, repo: { full_name: 'acme/site' }, ...head },
    base: { ref: 'main', repo: { full_name: 'acme/site' } },
    ...request,
  },
  repository: { full_name: 'acme/site' },
})

const gitLab = (action: string, request: object = {}) => ({
  object_kind: 'merge_request',
  event_type: 'merge_request',
  project: { path_with_namespace: 'group/sub/site' },
  object_attributes: {
    iid: 7,
    action,
    title: 'Fix the greeting',
    state: 'opened',
    source_branch: 'greeting',
    source_project_id: 14,
    target_project_id: 14,
    last_commit: { id: sha },
    updated_at: '2026-01-01 12:00:00 UTC',
    ...request,
  },
})

const known: PullRequestEvent = {
  action: 'open',
  name: 'pull_request opened',
  repository: 'acme/site',
  number: 7,
  title: 'Fix the greeting',
  branch: 'greeting',
  fromFork: false,
  commit: sha,
  ref: 'refs/pull/7/head',
  updatedAt: new Date('2026-01-01T12:00:00Z'),
}

describe('a request', () => {
  test('of GitHub, Gitea or Forgejo is read', () => expect(readPullRequestEvent(gitHub('opened'))).toEqual(known))

  test('of GitLab is read alike', () => {
    const of = { name: 'merge_request open', repository: 'group/sub/site', ref: 'refs/merge-requests/7/head' }
    expect(readPullRequestEvent(gitLab('open'))).toEqual({ ...known, ...of })
  })

  test.each([
    ['opened', 'open'],
    ['reopened', 'open'],
    ['synchronize', 'open'],
    ['synchronized', 'open'],
    ['edited', 'edit'],
    ['closed', 'close'],
    ['labeled', 'other'],
    ['constructor', 'other'],
  ])('that is %s is told by the action %s', (said, action) =>
    expect(readPullRequestEvent(gitHub(said)).action).toBe(action),
  )

  test.each([
    ['open', 'open'],
    ['update', 'edit'],
    ['reopen', 'open'],
    ['close', 'close'],
    ['merge', 'close'],
    ['approved', 'other'],
  ])('of GitLab with the action %s is told by %s', (said, action) =>
    expect(readPullRequestEvent(gitLab(said)).action).toBe(action),
  )

  test('of GitLab that has new commits is told by its old one', () =>
    expect(readPullRequestEvent(gitLab('update', { oldrev: sha })).action).toBe('open'))

  test('that is closed stays so, whatever is changed of it', () => {
    expect(readPullRequestEvent(gitHub('edited', { state: 'closed' })).action).toBe('close')
    expect(readPullRequestEvent(gitLab('update', { state: 'merged', oldrev: sha })).action).toBe('close')
    expect(readPullRequestEvent(gitHub('labeled', { state: 'closed' })).action).toBe('other')
  })

  test.each([
    ['another repository', gitHub('opened', {}, { repo: { full_name: 'mallory/site' } })],
    ['a fork that is deleted', gitHub('opened', {}, { repo: null })],
    ['nowhere', gitHub('opened', {}, { repo: undefined })],
    ['another project of GitLab', gitLab('open', { source_project_id: 15 })],
    ['no project of GitLab', gitLab('open', { source_project_id: null, target_project_id: null })],
  ])('from %s is one from a fork', (_from, body) => expect(readPullRequestEvent(body).fromFork).toBe(true))

  test('has a title of one line and of bounded length, which turns no text around it', () => {
    const titleOf = (title: unknown) => readPullRequestEvent(gitHub('opened', { title })).title
    expect(titleOf('a\u0000\r\nb\u202ec\u2066d')).toBe('a b c d')
    expect([...titleOf('😀'.repeat(1000))]).toHaveLength(200)
    expect(titleOf('x\ud800').isWellFormed()).toBe(true)
    expect(titleOf({ toString: 'x' })).toBe('')
  })

  test('says that it changed no later than now', () => {
    const timeOf = (updated_at: unknown) => readPullRequestEvent(gitHub('opened', { updated_at })).updatedAt
    expect(timeOf('9999-01-01T00:00:00Z')!.getTime()).toBeLessThanOrEqual(Date.now())
    expect([timeOf('soon'), timeOf(7), timeOf(null)]).toEqual([null, null, null])
  })

  test.each([
    ['no number', { ...gitHub('opened', { number: undefined }), number: undefined }],
    ['a number of another kind', { ...gitHub('opened'), number: {} }],
    ['a negative number', { ...gitHub('opened'), number: -1 }],
    ['a number that no column holds', { ...gitHub('opened'), number: 2 ** 31 }],
    ['a short hash', gitHub('opened', {}, { sha: 'abc' })],
    ['a branch that git forbids', gitHub('opened', {}, { ref: '--upload-pack=x' })],
    ['a broken branch', gitHub('opened', {}, { ref: 'a\ud800' })],
    ['no commit at GitLab', gitLab('open', { last_commit: null })],
  ])('with %s is refused', (_what, body) =>
    expect(() => readPullRequestEvent(body)).toThrow(expect.objectContaining({ code: 'validation_failed' })),
  )

  test.each([null, 7, 'x', [], {}, { pull_request: [] }, { object_kind: 'merge_request', object_attributes: 'x' }])(
    'that is %j is none',
    (body) => expect(readPullRequestEvent(body).action).toBe('other'),
  )
})
