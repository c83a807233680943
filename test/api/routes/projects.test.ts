import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

describe('creating a project', () => {
  test('needs a name and a repository only, and answers the planned fields first, in order', async () => {
    const { status, headers, body } = await api.call('POST', '/projects', { body: { name: 'site', repo: 'acme/site' } })
    expect(status).toBe(201)
    expect(headers.location).toBe('/api/projects/site')
    expect(Object.keys(body)).toEqual([
      ...['id', 'name', 'framework', 'repo', 'region', 'productionUrl'],
      ...['settings', 'createdAt', 'updatedAt', 'pinned', 'formerNames', 'defaultBranch', 'takedown'],
    ])
    expect(body.id).toMatch(/^prj_[0-9a-z]{24}$/)
    expect(body).toMatchObject({ name: 'site', framework: 'auto', repo: 'acme/site', region: 'local-1' })
    expect(body.productionUrl).toBe('http://site.localhost:8080')
    expect(body.settings).toEqual({
      productionBranch: 'main',
      rootDirectory: null,
      installCommand: null,
      buildCommand: null,
      outputDirectory: null,
      spaFallback: null,
      cleanUrls: true,
      publishAnyway: false,
      autoDeploy: true,
      hsts: false,
      buildNetwork: 'public',
      serverNetwork: 'public',
      instances: 1,
      previewProtection: 'none',
      skewProtection: false,
      watchPaths: [],
      crons: [],
    })
  })

  test('refuses a second one of the same name in the account with 409, and keeps the first', async () => {
    const again = await api.call('POST', '/projects', { body: { name: 'site', repo: 'acme/other' } })
    expect(again).toMatchObject({ status: 409, body: { code: 'project_exists' } })
    expect((await api.call('GET', '/projects/site')).body.repo).toBe('acme/site')
  })

  test('gives the plain address to the first account and one with a suffix to the next', async () => {
    const other = await api.newAccount()
    const { body } = await api.call('POST', '/projects', { token: other.token, body: { name: 'site', repo: 'b/site' } })
    expect(body.productionUrl).toMatch(/^http:\/\/site-[0-9a-z]{4}\.localhost:8080$/)
  })

  test('never gives away an address at which a deployment is served, or one of the platform’s own names', async () => {
    await api.newProject('shop')
    const { body: deployment } = await api.call('POST', '/deployments', { body: { project: 'shop' } })
    const label = new URL(deployment.url).hostname.split('.')[0]!
    const squatter = await api.newAccount()
    const taken = await api.call('POST', '/projects', { token: squatter.token, body: { name: label, repo: 'b/c' } })
    expect(new URL(taken.body.productionUrl).hostname).not.toBe(`${label}.localhost`)
    const reserved = await api.call('POST', '/projects', { body: { name: 'www', repo: 'b/c' } })
    expect(reserved.body.productionUrl).toMatch(/\/\/www-[0-9a-z]{4}\./)
  })

  test('names every bad field at once', async () => {
    const body = { name: 'Bad Name', framework: 'rails', repo: 'nope', extra: 1, settings: { cleanUrls: 'yes', x: 1 } }
    const { status, body: problem } = await api.call('POST', '/projects', { body })
    expect(status).toBe(422)
    expect(problem.code).toBe('validation_failed')
    expect(problem.errors.map((error: { pointer: string }) => error.pointer).sort()).toEqual(
      ['#/extra', '#/framework', '#/name', '#/repo', '#/settings/cleanUrls', '#/settings/x'].sort(),
    )
  })

  test.each([
    ['a name with an underscore', { name: 'a_b', repo: 'a/b' }],
    ['a name of 41 characters', { name: 'a'.repeat(41), repo: 'a/b' }],
    ['a name with two dashes in a row', { name: 'a--b', repo: 'a/b' }],
    ['a repository with a path', { name: 'a', repo: 'a/b/c' }],
    ['a repository that climbs', { name: 'a', repo: '../b' }],
    ['a repository that looks like an option', { name: 'a', repo: '-u/b' }],
    ['a directory outside the repository', { name: 'a', repo: 'a/b', settings: { rootDirectory: '../x' } }],
    ['a network of builds that there is not', { name: 'a', repo: 'a/b', settings: { buildNetwork: 'host' } }],
    ['a network of servers that there is not', { name: 'a', repo: 'a/b', settings: { serverNetwork: null } }],
    ['no instance of a server', { name: 'a', repo: 'a/b', settings: { instances: 0 } }],
    ['more than ten instances', { name: 'a', repo: 'a/b', settings: { instances: 11 } }],
    ['a branch that git forbids', { name: 'a', repo: 'a/b', settings: { productionBranch: 'a..b' } }],
  ])('refuses %s', async (_what, body) => {
    expect((await api.call('POST', '/projects', { body })).status).toBe(422)
  })
})

describe('reading and changing a project', () => {
  test('takes the name or the id', async () => {
    const byName = await api.call('GET', '/projects/site')
    const byId = await api.call('GET', `/projects/${byName.body.id}`)
    expect(byId.body).toEqual(byName.body)
  })

  test('changes what is sent and leaves the rest', async () => {
    const before = (await api.call('GET', '/projects/site')).body
    const change = { framework: 'vite', settings: { spaFallback: true, hsts: true, buildCommand: 'npm run build' } }
    const { status, body, headers: sent } = await api.call('PATCH', '/projects/site', { body: change })
    const { etag } = sent
    expect(status).toBe(200)
    expect(body).toEqual({
      ...before,
      framework: 'vite',
      settings: { ...before.settings, ...change.settings },
      updatedAt: body.updatedAt,
      changes: [
        { field: 'framework', appliesTo: 'next deployment' },
        { field: 'settings.buildCommand', appliesTo: 'next deployment' },
        { field: 'settings.spaFallback', appliesTo: 'now' },
        { field: 'settings.hsts', appliesTo: 'now' },
      ],
    })
    // Read again, it is the same version without the changes.
    const { headers, body: read } = await api.call('GET', '/projects/site')
    expect([read.changes, headers.etag]).toEqual([undefined, etag])
    const same = await api.call('PATCH', '/projects/site', { body: change })
    expect(same.body.changes).toEqual([])
    for (const spaFallback of [false, null, true]) {
      const { body } = await api.call('PATCH', '/projects/site', { body: { settings: { spaFallback } } })
      expect(body.settings.spaFallback).toBe(spaFallback)
      const { projects } = (await api.call('GET', '/projects')).body
      expect(projects.find(({ name }: { name: string }) => name === 'site').settings).toEqual(body.settings)
    }
    const { body: reset } = await api.call('PATCH', '/projects/site', { body: { settings: { buildCommand: null } } })
    expect(reset.settings.buildCommand).toBeNull()
  })

  test('sets what builds and servers may reach, apart from each other', async () => {
    const settings = { buildNetwork: 'registry', serverNetwork: 'none' }
    const { body: made } = await api.call('POST', '/projects', {
      body: { name: 'closed', repo: 'acme/site', settings },
    })
    expect(made.settings).toMatchObject(settings)
    const change = { settings: { serverNetwork: 'registry', instances: 3 } }
    const { body: changed } = await api.call('PATCH', '/projects/closed', { body: change })
    expect(changed.settings).toEqual({ ...made.settings, ...change.settings })
    expect((await api.call('GET', '/projects/closed')).body.settings).toEqual(changed.settings)
    for (const value of ['host', '', null, true]) {
      const refused = await api.call('PATCH', '/projects/closed', { body: { settings: { buildNetwork: value } } })
      expect(refused.status).toBe(422)
      expect(refused.body.errors[0].pointer).toBe('#/settings/buildNetwork')
    }
  })

  test('never changes the address', async () => {
    for (const body of [{ productionUrl: 'http://x' }, {}]) {
      expect((await api.call('PATCH', '/projects/site', { body })).status).toBe(422)
    }
  })

  test('answers 304 to a reader that has it, and 412 to a writer with an old copy', async () => {
    const first = await api.call('GET', '/projects/site')
    const etag = first.headers.etag!
    expect(etag).toMatch(/^"[\w-]+"$/)
    expect((await api.call('GET', '/projects/site', { headers: { 'if-none-match': etag } })).status).toBe(304)
    const changed = await api.call('PATCH', '/projects/site', {
      headers: { 'if-match': etag },
      body: { framework: 'vue' },
    })
    expect(changed.status).toBe(200)
    const late = await api.call('PATCH', '/projects/site', {
      headers: { 'if-match': etag },
      body: { framework: 'next' },
    })
    expect(late).toMatchObject({ status: 412, body: { code: 'precondition_failed' } })
    expect(changed.headers.etag).toBe((await api.call('GET', '/projects/site')).headers.etag)
  })

  test('two changes on the same copy at once make one winner', async () => {
    const etag = (await api.call('GET', '/projects/site')).headers.etag!
    const change = (framework: string) =>
      api.call('PATCH', '/projects/site', { headers: { 'if-match': etag }, body: { framework } })
    const statuses = (await Promise.all([change('astro'), change('hugo')])).map((answer) => answer.status).sort()
    expect(statuses).toEqual([200, 412])
  })
})

describe('listing projects', () => {
  test('goes by name, page by page, and stays whole while projects are added', async () => {
    const { token } = await api.newAccount()
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
    for (const name of names) await api.newProject(name, { token })
    const seen: string[] = []
    let path = '/projects?limit=3'
    for (;;) {
      const { body, headers } = await api.call('GET', path, { token })
      seen.push(...body.projects.map((project: { name: string }) => project.name))
      if (seen.length === 3) await api.newProject('bb', { token })
      if (!body.hasMore) {
        expect(headers.link).toBeUndefined()
        break
      }
      expect(headers.link).toContain('rel="next"')
      path = headers.link!.match(/<\/api([^>]+)>/)![1]!
    }
    expect(seen).toEqual(names)
    const backwards = await api.call('GET', '/projects?order=desc&limit=2', { token })
    expect(backwards.body.projects.map((project: { name: string }) => project.name)).toEqual(['g', 'f'])
  })

  test('filters by framework, repository and part of a name, taken literally', async () => {
    const { token } = await api.newAccount()
    await api.newProject('docs', { token, body: { framework: 'docusaurus' } })
    await api.newProject('store-docs', { token })
    const names = async (query: string) =>
      (await api.call('GET', `/projects?${query}`, { token })).body.projects.map(
        (project: { name: string }) => project.name,
      )
    expect(await names('framework=docusaurus')).toEqual(['docs'])
    expect(await names('repo=test/store-docs')).toEqual(['store-docs'])
    expect(await names('search=DOCS')).toEqual(['docs', 'store-docs'])
    for (const literal of ['%25', '_', '%5C']) expect(await names(`search=${literal}`)).toEqual([])
    expect(await names('repo=')).toEqual(['docs', 'store-docs'])
  })

  test.each([
    ['asc', ['one', 'three', 'two']],
    ['desc', ['two', 'three', 'one']],
  ])('walks filtered pages, %s', async (order, names) => {
    const { token } = await api.newAccount()
    const make = (name: string, framework: string) =>
      api.call('POST', '/projects', { token, body: { name, framework, repo: 'acme/site' } })
    for (const name of names) await make(name, 'hugo')
    await make('other', 'static')
    const seen: string[] = []
    let cursor = ''
    do {
      const query = `framework=hugo&limit=2&order=${order}${cursor && `&cursor=${cursor}`}`
      const { body } = await api.call('GET', `/projects?${query}`, { token })
      seen.push(...body.projects.map((project: { name: string }) => project.name))
      cursor = body.hasMore ? body.nextCursor : ''
    } while (cursor !== '')
    expect(seen).toEqual(names)
  })

  test.each([
    ['limit=0', 422],
    ['limit=101', 422],
    ['limit=ten', 422],
    ['limit=1&limit=2', 422],
    ['colour=red', 422],
    ['cursor=nonsense', 400],
  ])('refuses ?%s', async (query, status) => {
    expect((await api.call('GET', `/projects?${query}`)).status).toBe(status)
  })
})

describe('deleting a project', () => {
  test('takes its deployments along and writes one event', async () => {
    const project = await api.newProject('gone')
    const { body: deployment } = await api.call('POST', '/deployments', { body: { project: 'gone' } })
    expect((await api.call('DELETE', '/projects/gone')).status).toBe(204)
    expect((await api.call('GET', '/projects/gone')).status).toBe(404)
    expect((await api.call('GET', `/deployments/${deployment.id}`)).status).toBe(404)
    expect(await api.db.event.count({ where: { type: 'project.deleted', subject: project.id } })).toBe(1)
  })

  test('is refused while a domain is attached, naming it', async () => {
    await api.newProject('kept')
    await api.call('POST', '/domains', { body: { project: 'kept', name: 'kept.example.test' } })
    const { status, body } = await api.call('DELETE', '/projects/kept')
    expect(status).toBe(409)
    expect(body).toMatchObject({ code: 'project_has_domains' })
    expect(body.detail).toContain('kept.example.test')
  })
})
