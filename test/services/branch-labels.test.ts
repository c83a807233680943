// Labels of branches: one for each branch of a project, never shared, and never another account's.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ownNames } from '../../src/platform/http/own-names.ts'
import { setCommit } from '../../src/services/deployments/builds.ts'
import { createDeployment } from '../../src/services/deployments/deployments.ts'
import type { Actor } from '../../src/services/identity/actor.ts'
import { branchLabels, readYielded } from '../../src/services/projects/labels.ts'
import { sharedApi, type TestApi } from '../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

type Owner = { accountId: string; token: string }
const labelOf = (url: string) => new URL(url).hostname.replace('.localhost', '')

async function make(name: string, { token }: Owner = api): Promise<{ id: string; name: string; label: string }> {
  const { status, text, body } = await api.call('POST', '/projects', { token, body: { name, repo: 'acme/site' } })
  expect(status, text).toBe(201)
  return { id: body.id, name, label: labelOf(body.productionUrl) }
}

const git = (project: string, ...args: string[]) =>
  execFileSync('git', ['-C', join(api.config.dataDir, 'repos', `test/${project}.git`), ...args])

/** The label of the branch after a deployment of it. */
async function deploy(project: { id: string; name: string }, ref: string, { accountId }: Owner = api): Promise<string> {
  const actor: Actor = { accountId, tokenId: 'system', scopes: [], projectIds: null }
  const plan = { ref, commit: '', production: false, region: 'r', source: 'push' } as const
  const view = await createDeployment(api.db, api.deps.urls, actor, {
    ...plan,
    project: { ...project, pinnedDeploymentId: null },
  })
  return labelOf(view.branchUrl!)
}

describe('the label of a branch', () => {
  test('is the name of the project and that of the branch, and stays the same', async () => {
    const project = await make('site')
    expect(await deploy(project, 'main')).toBe('site-git-main')
    expect(await deploy(project, 'main')).toBe('site-git-main')
    await api.call('PATCH', '/projects/site', { body: { name: 'renamed' } })
    expect(await deploy(project, 'main')).toBe('site-git-main')
    const { body } = await api.call('GET', '/deployments?project=renamed&limit=1')
    expect(body.deployments[0].branchUrl).toMatch(/^http:\/\/site-git-main\.localhost/)
    expect((await api.call('GET', `/deployments/${body.deployments[0].id}`)).body).toEqual(body.deployments[0])
  })

  test('differs for names that differ in what a label cannot have, whichever is deployed first', async () => {
    const [one, two] = [await make('ways'), await make('yaws')]
    const refs = [
      'feature/a',
      'feature-a',
      'Feature-a',
      'feature--a',
      'feature-a-',
      'feature_a',
      'féature-a',
      '-feature-a',
    ]
    const labels: string[] = []
    for (const ref of refs) labels.push(await deploy(one, ref))
    for (const ref of refs.toReversed()) await deploy(two, ref)
    expect(new Set(labels).size).toBe(refs.length)
    for (const label of labels) expect(label).toMatch(/^ways-git-[a-z0-9]+(-[a-z0-9]+)*$/)
    expect(labels[1]).toBe('ways-git-feature-a')
    expect(labels[0]).toMatch(/^ways-git-feature-a-[0-9a-f]{8}$/)
    const stored = await api.db.branch.findMany({ where: { projectId: two.id } })
    expect(new Map(stored.map(({ ref, label }) => [ref, label])).get('feature-a')).toBe('yaws-git-feature-a')
  })

  test.each([
    ['of 80 characters', 'x'.repeat(80), /^odd-git-x+-[0-9a-f]{8}$/],
    ['of exactly 63 octets with the project', 'y'.repeat(55), /^odd-git-y{55}$/],
    ['with umlauts', 'grün/ärger', /^odd-git-gr-n-rger-[0-9a-f]{8}$/],
    ['of punctuation alone', '+++', /^odd-git-[0-9a-f]{8}$/],
    ['in capitals', 'MAIN', /^odd-git-main-[0-9a-f]{8}$/],
    ['that looks like Punycode', 'xn--mnchen-3ya', /^odd-git-xn-mnchen-3ya-[0-9a-f]{8}$/],
  ])('%s has at most 63 octets of letters, digits and single dashes', (_what, ref, expected) => {
    const [label] = branchLabels('odd', ref)
    expect(label).toMatch(expected)
    expect(label!.length).toBeLessThanOrEqual(63)
  })

  test('of a project with a long label has room for neither, and is its own all the same', async () => {
    const [one, two] = [`${'p'.repeat(62)}a`, `${'p'.repeat(62)}b`]
    const labels = [one, two].flatMap((project) => ['a', 'b'].map((ref) => branchLabels(project, ref).next().value!))
    expect(new Set(labels).size).toBe(4)
    for (const label of labels) expect(label).toMatch(/^p{54}-[0-9a-f]{8}$/)
  })

  test('goes to one branch of many that are deployed at once', async () => {
    const project = await make('rushed')
    const refs = ['same', 'same', 'same', 'Same', 'Same', 'SAME']
    const labels = await Promise.all(refs.map((ref) => deploy(project, ref)))
    expect(labels.slice(0, 3)).toEqual(['rushed-git-same', 'rushed-git-same', 'rushed-git-same'])
    expect(new Set(labels).size).toBe(3)
    expect(await api.db.branch.count({ where: { projectId: project.id } })).toBe(3)
  })

  test('is none of a commit, of a tag or of files that were uploaded, also when they are deployed again', async () => {
    await api.newProject('bare')
    const body = { project: 'bare', source: { files: [{ path: 'index.html', sha256: 'a'.repeat(64), size: 1 }] } }
    expect((await api.call('POST', '/deployments', { body })).body.branchUrl).toBeNull()
    const { body: named } = await api.call('POST', '/deployments', { body: { project: 'bare' } })
    expect(labelOf(named.branchUrl)).toBe('bare-git-main')
    git('bare', 'tag', 'v1', 'main')
    for (const ref of [named.commitSha, named.commit, 'v1']) {
      const { body } = await api.call('POST', '/deployments', { body: { project: 'bare', ref } })
      expect(body).toMatchObject({ ref, branchUrl: null })
      const again = await api.call('POST', `/deployments/${body.id}/redeploy`)
      expect(again.body).toMatchObject({ ref, branchUrl: null })
    }
    expect((await api.call('POST', `/deployments/${named.id}/redeploy`)).body.branchUrl).toBe(named.branchUrl)
    // Pushed, it is the name of a branch.
    const { id } = await api.db.project.findFirstOrThrow({ where: { name: 'bare' } })
    expect(await deploy({ id, name: 'bare' }, 'deadbeef')).toBe('bare-git-deadbeef')
  })

  test('is found for HEAD once the repository has named its default branch', async () => {
    const project = await make('headless')
    const actor: Actor = { accountId: api.accountId, tokenId: 'system', scopes: [], projectIds: null }
    const planned = { ref: 'HEAD', commit: '', production: false, region: 'r', source: 'api' } as const
    const plan = { ...planned, project: { ...project, pinnedDeploymentId: null } }
    const { id, branchUrl } = await createDeployment(api.db, api.deps.urls, actor, plan)
    expect(branchUrl).toBeNull()
    await setCommit(api.db, api.deps.urls, { id, projectId: project.id, ref: 'trunk', commit: 'c'.repeat(40) })
    const { body } = await api.call('GET', `/deployments/${id}`)
    expect(body.ref).toBe('trunk')
    expect(labelOf(body.branchUrl)).toBe('headless-git-trunk')
  })

  test('is kept off the hosts of the platform, and one that the platform takes is told', async () => {
    const project = await make('gate')
    const actor: Actor = { accountId: api.accountId, tokenId: 'system', scopes: [], projectIds: null }
    const urls = { ...api.deps.urls, isOwnLabel: (label: string) => label === 'gate-git-api' }
    const planned = { ref: 'api', commit: '', production: false, region: 'r', source: 'push' } as const
    const plan = { ...planned, project: { ...project, pinnedDeploymentId: null } }
    expect(labelOf((await createDeployment(api.db, urls, actor, plan)).branchUrl!)).toMatch(
      /^gate-git-api-[0-9a-f]{8}$/,
    )
    await deploy(project, 'main')
    const { hosts } = ownNames({ ...api.config, baseUrl: 'https://gate-git-main.localhost' })
    expect(await readYielded(api.db, 'localhost', hosts)).toEqual([
      { host: 'gate-git-main.localhost', projectId: project.id },
    ])
  })
})

describe('another account', () => {
  test('with a project of the same name has branches of its own', async () => {
    const other = await api.newAccount()
    const [mine, theirs] = [await make('twin'), await make('twin', other)]
    expect(await deploy(mine, 'main')).toBe('twin-git-main')
    expect(await deploy(theirs, 'main', other)).toBe(`${theirs.label}-git-main`)
  })

  test('that had the host as a project before keeps it, and the branch gets a suffix', async () => {
    const other = await api.newAccount()
    // From before such names got a suffix.
    const theirs = await make('older', other)
    await api.db.label.create({ data: { name: 'early-git-main', accountId: other.accountId, projectName: 'older' } })
    await api.db.project.update({ where: { id: theirs.id }, data: { label: 'early-git-main' } })
    const mine = await make('early')
    expect(await deploy(mine, 'main')).toMatch(/^early-git-main-[0-9a-f]{8}$/)
    const shown = await api.call('GET', '/projects/older', { token: other.token })
    expect(labelOf(shown.body.productionUrl)).toBe('early-git-main')
  })

  test('gets no project at the host of a branch, deployed or not, nor by another name for it', async () => {
    const other = await api.newAccount()
    const mine = await make('prey')
    await deploy(mine, 'main')
    expect((await make('prey-git-main', other)).label).toMatch(/^prey-git-main-[0-9a-z]{4}$/)
    expect((await make('prey-git-next', other)).label).toMatch(/^prey-git-next-[0-9a-z]{4}$/)
    expect(await deploy(mine, 'next')).toBe('prey-git-next')
    // Whose branch `main` would be at the host of the branch `git-main`.
    expect((await make('prey-git', other)).label).toMatch(/^prey-git-[0-9a-z]{4}$/)
    // Nor the owner, whose project would stand where the branch is.
    expect((await make('prey-git-main')).label).toMatch(/^prey-git-main-[0-9a-z]{4}$/)
  })

  test('gets it neither after the project is deleted, nor by a row that is written past the service', async () => {
    const other = await api.newAccount()
    const mine = await make('past')
    await deploy(mine, 'main')
    await api.db.project.delete({ where: { id: mine.id } })
    const theirs = await make('past', other)
    expect(theirs.label).not.toBe('past')
    const stolen = { projectId: theirs.id, ref: 'main', label: 'past-git-main' }
    await expect(api.db.branch.create({ data: stolen })).rejects.toThrow(/label_pkey|Unique constraint/)
    const row = await api.db.project.findUniqueOrThrow({ where: { id: theirs.id } })
    const project = api.db.project.create({ data: { ...row, id: 'prj_x', name: 'x', label: 'past-git-main' } })
    await expect(project).rejects.toThrow(/label_pkey|Unique constraint/)
    expect(await deploy(await make('past'), 'main')).toBe('past-git-main')
  })
})
