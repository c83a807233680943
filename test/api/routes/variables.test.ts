// The variables of a project: one value per target, sealed at rest.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { placeOf } from '../../../src/platform/secrets/secrets.ts'
import { type Build, openVariables } from '../../../src/services/deployments/builds.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

describe('build-time variables', () => {
  test('are set, listed and deleted, and their values are never returned or stored in the clear', async () => {
    await api.newProject('vars')
    const put = await api.call('PUT', '/projects/vars/env/API_KEY', {
      body: { value: 'hunter2', target: 'production' },
    })
    expect(put).toMatchObject({ status: 200, body: { key: 'API_KEY', target: 'production' } })
    await api.call('PUT', '/projects/vars/env/API_KEY', { body: { value: 'hunter3' } })
    const list = await api.call('GET', '/projects/vars/env')
    expect(list.body.env).toMatchObject([
      { key: 'API_KEY', target: 'all', readable: false, value: null },
      { key: 'API_KEY', target: 'production', readable: false, value: null },
    ])
    expect(list.text + put.text).not.toContain('hunter')
    const [row] = await api.db.variable.findMany({ where: { key: 'API_KEY', target: 'all' } })
    expect(Buffer.from(row!.sealed).toString('latin1')).not.toContain('hunter')
    expect(api.deps.vault.open(row!.sealed, placeOf.variable(row!.projectId, 'API_KEY')).toString()).toBe('hunter3')
    expect((await api.call('DELETE', '/projects/vars/env/API_KEY')).status).toBe(204)
    expect((await api.call('DELETE', '/projects/vars/env/API_KEY')).status).toBe(404)
  })

  test('have a value for each target, of which one is set or deleted without the others', async () => {
    await api.newProject('targets')
    const project = await api.db.project.findFirstOrThrow({ where: { name: 'targets' } })
    const put = (value: string, target?: string) =>
      api.call('PUT', '/projects/targets/env/URL', { body: { value, ...(target && { target }) } })
    const values = async () => {
      const of = (production: boolean) =>
        openVariables(api.db, api.deps.vault, { projectId: project.id, production } as Build)
      return [(await of(true)).URL, (await of(false)).URL]
    }
    await put('live', 'production')
    expect(await values()).toEqual(['live', undefined])
    await put('trial', 'preview')
    await put('any')
    expect(await values()).toEqual(['live', 'trial'])
    await put('live again', 'production')
    expect(await values()).toEqual(['live again', 'trial'])
    const remove = (query: string) => api.call('DELETE', `/projects/targets/env/URL${query}`)
    expect((await remove('?target=production')).status).toBe(204)
    expect(await values()).toEqual(['any', 'trial'])
    expect((await remove('?target=production')).status).toBe(404)
    expect((await remove('?target=nothing')).status).toBe(422)
    expect((await remove('')).status).toBe(204)
    expect(await values()).toEqual([undefined, undefined])
  })

  test('are returned where they are readable, and a secret cannot be made so without its value', async () => {
    const put = (body: object) => api.call('PUT', '/projects/targets/env/PUBLIC', { body })
    expect((await put({ value: 'seen', readable: true })).body).toMatchObject({ readable: true, value: 'seen' })
    await put({ value: 'hidden', target: 'production' })
    const list = await api.call('GET', '/projects/targets/env')
    expect(list.body.env).toMatchObject([
      { target: 'all', value: 'seen' },
      { target: 'production', value: null },
    ])
    expect((await put({ target: 'production', readable: true })).status).toBe(422)
    expect((await put({ value: 'secret now' })).body).toMatchObject({ readable: false, value: null })
    const { body } = await api.call('POST', '/tokens', { body: { name: 'd', scopes: ['deployments:write'] } })
    expect((await api.call('GET', '/projects/targets/env', { token: body.token })).status).toBe(403)
  })

  test('have names that a shell can hold', async () => {
    const { status, body } = await api.call('PUT', '/projects/vars/env/1-BAD', { body: { value: 'x' } })
    expect(status).toBe(422)
    expect(body.errors[0]).toMatchObject({ in: 'path', pointer: '#/key' })
  })
})
