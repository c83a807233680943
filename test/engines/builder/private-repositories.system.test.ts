import { readdir } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createRepository } from '../../helpers/repository.ts'
import { hasSshd, type Sshd, startSshd } from '../../helpers/sshd.ts'
import { type Platform, scripts, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 120_000 })

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform({ WEBHOOK_ALLOW_PRIVATE: 'true', BUILD_CONCURRENCY: '4' })
})
afterAll(() => platform.stop())

const call = (method: string, path: string, body?: object) =>
  platform.api.call(method, path, body === undefined ? {} : { body })
const access = (name: string, body: object) => call('PUT', `/projects/${name}/repository-access`, body)

async function deployed(name: string) {
  const id = await platform.deploy(name)
  return { id, deployment: await platform.settled(id) }
}

/** Shows all that a build can see of its surroundings. */
const look = [
  'mkdir -p dist',
  'env > dist/index.html',
  'cat .git/config >> dist/index.html 2>&1 || true',
  'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline >> dist/index.html 2>/dev/null || true',
  'ls -a /tmp /var/tmp /run | grep "berth-[s]sh-" >> dist/index.html 2>/dev/null || true',
].join('; ')

describe('a repository that wants a token', () => {
  const secret = 'hunter2-hunter2-hunter2'
  const wanted = `Basic ${Buffer.from(`x-access-token:${secret}`).toString('base64')}`
  const headers: (string | undefined)[] = []
  let other: Server
  let otherUrl: string
  const seenThere: (string | undefined)[] = []

  beforeAll(async () => {
    other = createServer((request, response) => {
      seenThere.push(request.headers.authorization)
      response.statusCode = 404
      response.end()
    })
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    otherUrl = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
    platform.host.handlers.push((request, response) => {
      if (request.url!.includes('/acme/moved')) {
        response.writeHead(302, { location: `${otherUrl}${request.url}` }).end()
        return true
      }
      if (!request.url!.includes('/acme/private')) return false
      headers.push(request.headers.authorization)
      if (request.headers.authorization === wanted) return false
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
      return true
    })
  })
  afterAll(() => void other.close())

  test('is refused without one, with what to do, and is cloned with it; the build sees nothing of it', async () => {
    await platform.project('private', { 'package.json': scripts({ build: look }) }, { framework: 'vite' })
    const denied = await deployed('private')
    expect(denied.deployment).toMatchObject({ state: 'ERROR', error: { code: 'repository_access_denied' } })
    expect(denied.deployment.error.message).toContain('repository-access')
    expect(await access('private', { kind: 'token', token: 'wrong' })).toMatchObject({ status: 200 })
    expect((await deployed('private')).deployment.error.code).toBe('repository_access_denied')
    const { body } = await access('private', { kind: 'token', token: secret })
    expect(body).toMatchObject({ kind: 'token', username: 'x-access-token', publicKey: null, hostKeys: [] })
    const { id, deployment } = await deployed('private')
    expect(deployment).toMatchObject({ state: 'READY', commit: expect.stringMatching(/^[0-9a-f]{7}$/) })
    const seen = await platform.file(id, 'index.html')
    expect(seen).toContain('BERTH_COMMIT=')
    for (const text of [seen, await platform.log(id), JSON.stringify(body)]) {
      expect(text).not.toContain(secret)
      expect(text).not.toContain(wanted.slice(6))
    }
  })

  test('by its full address is cloned the same way, and pushes to it are known by its name', async () => {
    const repo = `${platform.host.template.replace('{repo}', 'acme/private')}`
    await call('POST', '/projects', { name: 'by-address', repo, framework: 'static' })
    await access('by-address', { kind: 'token', token: secret })
    expect((await deployed('by-address')).deployment).toMatchObject({ state: 'READY' })
  })

  test('keeps its token to its host: a redirect is not followed, and another host gets nothing', async () => {
    await call('POST', '/projects', { name: 'moved', repo: 'acme/moved' })
    await access('moved', { kind: 'token', token: secret })
    expect((await call('POST', '/deployments', { project: 'moved' })).status).toBe(201)
    await call('PATCH', '/projects/moved', { repo: `${otherUrl}/acme/elsewhere` })
    await call('POST', '/deployments', { project: 'moved' })
    await expect.poll(() => seenThere.length, { timeout: 30_000 }).toBeGreaterThan(0)
    expect(seenThere.every((header) => header === undefined)).toBe(true)
  })
})

describe.skipIf(!hasSshd())('a repository over SSH', () => {
  let sshd: Sshd
  let lib: string
  beforeAll(async () => {
    sshd = await startSshd()
    lib = await createRepository(platform.repositories, 'acme/lib', { 'lib.txt': 'lib' })
    const modules = '[submodule "lib"]\n\tpath = lib\n\turl = ../lib.git\n'
    const files = { 'package.json': scripts({ build: `${look}; cp lib/lib.txt dist` }), '.gitmodules': modules }
    await createRepository(platform.repositories, 'acme/deep', files, { submodules: { lib } })
  })
  afterAll(() => sshd.stop())

  const repo = () => `ssh://${sshd.place}${platform.repositories}/acme/deep.git`

  test('is cloned with its deploy key, with its submodules; the host is pinned at first use', async () => {
    await call('POST', '/projects', { name: 'deep', repo: repo(), framework: 'vite' })
    expect((await deployed('deep')).deployment.error.code).toBe('repository_access_denied')
    const { body: made } = await access('deep', { kind: 'deploy_key' })
    expect(made).toMatchObject({ host: `ssh://127.0.0.1:${sshd.port}`, hostKeys: [], hostKeysFrom: null })
    expect(made.publicKey).toMatch(/^ssh-ed25519 AAAAC3NzaC1lZDI1NTE5\S+ berth-deep$/)
    expect(await access('deep', { kind: 'deploy_key' })).toMatchObject({ body: { publicKey: made.publicKey } })
    expect((await deployed('deep')).deployment.error.code).toBe('repository_access_denied')
    await sshd.letIn(made.publicKey)
    const { id, deployment } = await deployed('deep')
    expect(deployment).toMatchObject({ state: 'READY', error: null })
    expect(await platform.file(id, 'lib.txt')).toBe('lib')
    const seen = await platform.file(id, 'index.html')
    for (const text of [seen, await platform.log(id)]) expect(text).not.toMatch(/PRIVATE KEY|GIT_SSH|berth-ssh-/)
    const { body } = await call('GET', '/projects/deep/repository-access')
    expect(body).toMatchObject({ hostKeys: [await sshd.hostKey()], hostKeysFrom: 'first_use' })
  })

  test('whose host shows another key is not cloned until its owner says so', async () => {
    await sshd.changeHostKey()
    const changed = await deployed('deep')
    expect(changed.deployment).toMatchObject({ state: 'ERROR', error: { code: 'host_key_changed' } })
    expect(changed.deployment.error.message).toContain('hostKeys')
    const key = await sshd.hostKey()
    const put = await access('deep', { kind: 'deploy_key', hostKeys: [key] })
    expect(put.body).toMatchObject({ hostKeys: [key], hostKeysFrom: 'given' })
    expect((await deployed('deep')).deployment).toMatchObject({ state: 'READY' })
  })

  test('leaves no file with the key behind', async () => {
    expect((await readdir(tmpdir())).filter((name) => name.startsWith('berth-ssh-'))).toEqual([])
  })
})
