// The production branch of a project that names none is the default branch of its repository.
import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

/** A project whose repository has these branches alone; the first one is the default. */
async function newProject(name: string, branches: string[], settings?: object) {
  await api.newProject(name, { body: { ...(settings && { settings }) } })
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', join(api.config.dataDir, `repos/test/${name}.git`), ...args], { encoding: 'utf8' })
  const commit = git('rev-parse', 'main').trim()
  for (const branch of branches) git('update-ref', `refs/heads/${branch}`, commit)
  const setDefault = (branch: string) => git('symbolic-ref', 'HEAD', `refs/heads/${branch}`)
  setDefault(branches[0] ?? 'main')
  if (!branches.includes('main')) git('update-ref', '-d', 'refs/heads/main')
  return { setDefault, commit }
}

const deploy = (name: string, body: object = {}) =>
  api.call('POST', '/deployments', { body: { project: name, ...body } })
const project = async (name: string) => (await api.call('GET', `/projects/${name}`)).body

async function push(name: string, branch: string, after: string, repository: object = {}) {
  const { body: hook } = await api.call('POST', `/projects/${name}/hook`)
  const text = JSON.stringify({
    ref: `refs/heads/${branch}`,
    after,
    repository: { full_name: `test/${name}`, ...repository },
  })
  const headers = {
    'content-type': 'application/json',
    'x-hub-signature-256': `sha256=${createHmac('sha256', hook.secret).update(text).digest('hex')}`,
  }
  const sent = await api.app.inject({ method: 'POST', url: new URL(hook.url).pathname, payload: text, headers })
  return (await api.call('GET', `/deployments/${sent.json().deployment}`)).body
}

test('a repository that only has master is deployed without a word about branches', async () => {
  await newProject('old', ['master'])
  expect(await project('old')).toMatchObject({ defaultBranch: null, settings: { productionBranch: 'main' } })
  expect(await deploy('old', { production: true })).toMatchObject({
    status: 201,
    body: { ref: 'master', warnings: [] },
  })
  expect(await project('old')).toMatchObject({ defaultBranch: 'master', settings: { productionBranch: 'master' } })
})

test('a push to the default branch goes to production, any other one is a preview', async () => {
  const { commit } = await newProject('pushed', ['trunk', 'next'])
  expect(await push('pushed', 'next', commit)).toMatchObject({ ref: 'next', production: false })
  expect(await push('pushed', 'trunk', commit)).toMatchObject({ ref: 'trunk', production: true })
})

test('another default branch is followed by the next deployment, unless the project names its own', async () => {
  const { setDefault } = await newProject('moving', ['master', 'main'])
  expect((await deploy('moving')).body.ref).toBe('master')
  setDefault('main')
  expect((await deploy('moving')).body.ref).toBe('main')
  const set = (productionBranch: string | null) =>
    api.call('PATCH', '/projects/moving', { body: { settings: { productionBranch } } })
  expect((await set('master')).body.settings.productionBranch).toBe('master')
  expect((await deploy('moving')).body.ref).toBe('master')
  expect((await set(null)).body).toMatchObject({ defaultBranch: 'main', settings: { productionBranch: 'main' } })
  expect((await deploy('moving')).body.ref).toBe('main')
})

test('a deploy hook without a ref deploys the default branch to production', async () => {
  await newProject('hooked', ['master'])
  const { body: hook } = await api.call('POST', '/projects/hooked/deploy-hooks', { body: { name: 'cms' } })
  const sent = await api.app.inject({ method: 'POST', url: new URL(hook.url).pathname })
  const { body } = await api.call('GET', `/deployments/${sent.json().deployment}`)
  expect(body).toMatchObject({ ref: 'master', production: true })
})

test('the default branch of another repository is asked for anew', async () => {
  await newProject('first', ['master'])
  await newProject('second', ['trunk'])
  await deploy('first')
  const { body } = await api.call('PATCH', '/projects/first', { body: { repo: 'test/second' } })
  expect(body.defaultBranch).toBeNull()
  expect((await deploy('first')).body.ref).toBe('trunk')
})

test('a ref that is not there is refused with the branches that are', async () => {
  await newProject('few', ['master', 'beta', 'alpha'], { productionBranch: 'main' })
  const { status, body } = await deploy('few')
  expect(status).toBe(422)
  expect(body.detail).toBe(
    'test/few has no branch, tag or commit main. Its branches are master (default), alpha and beta. ' +
      'Deploy one of them with `ref`, or change settings.productionBranch of the project.',
  )
  const names = Array.from({ length: 12 }, (_, index) => `b${String(index).padStart(2, '0')}`)
  await newProject('many', names)
  expect((await deploy('many', { ref: 'x' })).body.detail).toContain(
    'b00 (default), b01, b02, b03, b04, b05, b06, b07, b08, b09 and 2 more.',
  )
})

test('a repository without any branch is told to be empty', async () => {
  await newProject('bare', [])
  expect(await deploy('bare')).toMatchObject({
    status: 422,
    body: { code: 'ref_not_found', detail: 'test/bare has no branches yet. Push a commit, then deploy again.' },
  })
})
