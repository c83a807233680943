import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await startApi({ GIT_URL_TEMPLATE: 'https://git.example.com/{repo}.git' })
})
afterAll(() => api.stop())

let made = 0
async function project(repo = 'acme/site'): Promise<string> {
  const name = `site-${++made}`
  expect((await api.call('POST', '/projects', { body: { name, repo } })).status).toBe(201)
  return `/projects/${name}/repository-access`
}
const put = (path: string, body: object) => api.call('PUT', path, { body })
const hostKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl'

describe('the access to a private repository', () => {
  test('is a deploy key for the host of the repository, whose private half is sealed and never shown', async () => {
    const path = await project()
    expect((await api.call('GET', path)).status).toBe(404)
    const { status, body } = await put(path, { kind: 'deploy_key' })
    expect({ status, host: body.host, keys: body.hostKeys }).toEqual({
      status: 200,
      host: 'ssh://git.example.com',
      keys: [],
    })
    expect(body.publicKey).toMatch(/^ssh-ed25519 /)
    expect(await api.call('GET', path)).toMatchObject({ status: 200, body })
    const rows = await api.db.repositoryAccess.findMany()
    for (const { secret } of rows) expect(Buffer.from(secret).toString('latin1')).not.toContain('PRIVATE KEY')
  })

  test('keeps its key when host keys are given, and makes another one when asked', async () => {
    const path = await project('git@github.com:acme/site.git')
    const first = await put(path, { kind: 'deploy_key' })
    expect(first.body).toMatchObject({ host: 'ssh://github.com', hostKeys: [hostKey], hostKeysFrom: 'built_in' })
    const second = await put(path, { kind: 'deploy_key', hostKeys: [hostKey] })
    expect(second.body).toMatchObject({ publicKey: first.body.publicKey, hostKeysFrom: 'given' })
    const third = await put(path, { kind: 'deploy_key', newKey: true })
    expect(third.body.publicKey).not.toBe(first.body.publicKey)
  })

  test('is a token, which no answer and no event shows', async () => {
    const path = await project()
    const token = 'secret-secret-secret'
    const { body, text } = await put(path, { kind: 'token', token })
    expect(body).toMatchObject({ kind: 'token', host: 'https://git.example.com', username: 'x-access-token' })
    const events = await api.call('GET', '/events?limit=100')
    for (const shown of [text, (await api.call('GET', path)).text, events.text]) expect(shown).not.toContain(token)
    expect((await api.call('DELETE', path)).status).toBe(204)
    expect((await api.call('DELETE', path)).status).toBe(404)
  })

  test.each([
    [{ kind: 'token' }, ['#/token']],
    [{ kind: 'token', token: 'x', hostKeys: [hostKey], newKey: true }, ['#/hostKeys', '#/newKey']],
    [{ kind: 'deploy_key', token: 'x', username: 'y' }, ['#/username', '#/token']],
    [{ kind: 'deploy_key', hostKeys: [hostKey.replace('ssh-ed25519', 'ssh-rsa')] }, ['#/hostKeys/0']],
    [{ kind: 'deploy_key', hostKeys: ['* ssh-ed25519 AAAA'] }, ['#/hostKeys/0']],
    [{ kind: 'token', token: 'a\nb' }, ['#/token']],
    [{ kind: 'password' }, ['#/kind']],
  ])('%j is refused by its fields', async (body, pointers) => {
    const answer = await put(await project(), body)
    expect(answer.status).toBe(422)
    const named = answer.body.errors.map(({ pointer }: { pointer: string }) => pointer)
    expect([...named].sort()).toEqual([...pointers].sort())
  })

  test('by a token is refused for a repository over SSH', async () => {
    const { status, body } = await put(await project('git@github.com:acme/site.git'), { kind: 'token', token: 'x' })
    expect({ status, pointer: body.errors[0].pointer }).toEqual({ status: 422, pointer: '#/kind' })
  })
})

test.each(['https://10.0.0.1/acme/site', 'git@localhost:acme/site', 'https://git.example.com:99999/a/b'])(
  'the repository %s is refused',
  async (repo) => {
    const { status, body } = await api.call('POST', '/projects', { body: { name: 'refused', repo } })
    expect({ status, pointer: body.errors?.[0].pointer }).toEqual({ status: 422, pointer: '#/repo' })
  },
)
