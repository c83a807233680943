// Renamed projects: every address and field that takes a project still takes its former names.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { operationsOf } from '../../access/operations.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

const rename = (project: string, name: string, token?: string) =>
  api.call('PATCH', `/projects/${project}`, { body: { name }, ...(token && { token }) })

test('a project gets another name and keeps its addresses', async () => {
  const before = await api.newProject('shop')
  const { status, body } = await rename('shop', 'store')
  expect([status, body]).toEqual([
    200,
    { ...before, name: 'store', formerNames: ['shop'], updatedAt: expect.any(String), takedown: null, changes: [] },
  ])
  const event = await api.db.event.findFirstOrThrow({ where: { subject: before.id, type: 'project.updated' } })
  expect(event.data).toMatchObject({ name: 'store', formerNames: ['shop'], productionUrl: before.productionUrl })
  const listed = await api.call('GET', '/projects')
  expect(listed.body.projects).toMatchObject([{ name: 'store', formerNames: ['shop'] }])
})

describe('a former name', () => {
  test('is taken by every operation that has a project in its address, as the present one is', async () => {
    const reads = operationsOf(api.app).filter(
      ({ method, template }) => method === 'GET' && /\{project\}/.test(template) && !/\{(?!project)/.test(template),
    )
    expect(reads.length).toBeGreaterThan(7)
    for (const { template } of reads) {
      const [old, present] = await Promise.all(
        ['shop', 'store'].map((name) => api.call('GET', template.replace('{project}', name))),
      )
      expect([template, old!.status, old!.headers.etag]).toEqual([template, present!.status, present!.headers.etag])
    }
    expect((await api.call('GET', '/projects/shop')).body.name).toBe('store')
  })

  test('is taken by every field and filter that names a project', async () => {
    const deployed = await api.call('POST', '/deployments', { body: { project: 'shop' } })
    expect([deployed.status, deployed.body.project]).toEqual([201, 'store'])
    const attached = await api.call('POST', '/domains', { body: { project: 'shop', name: 'shop.example.org' } })
    expect([attached.status, attached.body.project]).toEqual([201, 'store'])
    const moved = await api.call('PATCH', '/domains/shop.example.org', { body: { project: 'shop' } })
    expect(moved.status, moved.text).toBe(200)
    for (const list of ['deployments', 'domains']) {
      const { body } = await api.call('GET', `/${list}?project=shop`)
      expect(body[list]).toMatchObject([{ project: 'store' }])
    }
    const { body } = await api.call('POST', '/tokens', { body: { name: 'ci', scopes: ['*'], projects: ['shop'] } })
    expect(body.projects).toEqual(['store'])
    const narrowed = await api.call('GET', '/projects/shop', { token: body.secret })
    expect(narrowed.body.name).toBe('store')
    const variable = await api.call('PUT', '/projects/shop/env/A', { body: { value: 'x' } })
    expect(variable.status).toBe(200)
  })

  test('goes to no other project of the account, but to one of another account', async () => {
    const made = await api.call('POST', '/projects', { body: { name: 'shop', repo: 'a/b' } })
    expect(made.body).toMatchObject({ code: 'project_exists', detail: 'shop is a former name of the project store.' })
    await api.newProject('cafe')
    for (const name of ['shop', 'store']) expect((await rename('cafe', name)).body.code).toBe('project_exists')
    const other = await api.newAccount()
    expect((await api.call('GET', '/projects/shop', { token: other.token })).status).toBe(404)
    expect((await rename('shop', 'mine', other.token)).status).toBe(404)
    await api.newProject('shop', { token: other.token })
    expect((await api.call('GET', '/projects/shop')).body.name).toBe('store')
  })

  test('is shown to no token that is narrowed to other projects', async () => {
    const { body } = await api.call('POST', '/tokens', { body: { name: 'x', scopes: ['*'], projects: ['cafe'] } })
    for (const [method, path, sent] of [
      ['GET', '/projects/shop', undefined],
      ['PATCH', '/projects/shop', { framework: 'hugo' }],
      ['POST', '/deployments', { project: 'shop' }],
    ] as const) {
      const answer = await api.call(method, path, { token: body.secret, ...(sent && { body: sent }) })
      expect(answer.body).toMatchObject({ status: 404, detail: 'There is no project shop.' })
    }
  })

  test('may be taken back by its project, and is free once that is deleted', async () => {
    expect((await rename('shop', 'shop')).body).toMatchObject({ name: 'shop', formerNames: ['store'] })
    await api.call('DELETE', '/domains/shop.example.org')
    expect((await api.call('DELETE', '/projects/store')).status).toBe(204)
    expect((await api.newProject('store')).name).toBe('store')
  })
})

test('of two projects that want one name at once, one gets it', async () => {
  await Promise.all(['one', 'two'].map((name) => api.newProject(name)))
  const answers = await Promise.all(['one', 'two'].map((name) => rename(name, 'three')))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  expect((await rename('one', 'NO')).body.errors).toMatchObject([{ pointer: '#/name' }])
})

test('twenty former names are kept', async () => {
  await api.newProject('name-0')
  for (let count = 1; count <= 21; count++) await rename(`name-${count - 1}`, `name-${count}`)
  expect((await api.call('GET', '/projects/name-1')).body.name).toBe('name-21')
  expect((await api.call('GET', '/projects/name-0')).status).toBe(404)
})
