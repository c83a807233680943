import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { submoduleUrl } from '../../../src/engines/builder/source/submodules.ts'
import { createRepository } from '../../helpers/repository.ts'
import { type Platform, scripts, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 120_000 })

describe('the address of a submodule', () => {
  const template = 'https://git.example.com/{repo}.git'
  const parent = 'https://git.example.com/acme/site.git'
  const address = (url: string | undefined) => submoduleUrl(url, 'lib', parent, template)

  test.each([
    ['https://git.example.com/acme/lib.git', 'https://git.example.com/acme/lib.git'],
    ['https://GIT.example.com:443/acme/lib', 'https://git.example.com/acme/lib'],
    ['../lib.git', 'https://git.example.com/acme/lib.git'],
    ['../../other/lib', 'https://git.example.com/other/lib'],
    ['./sub.git', 'https://git.example.com/acme/site.git/sub.git'],
    ['git@git.example.com:acme/lib.git', 'https://git.example.com/acme/lib.git'],
    ['git@git.example.com:/acme/lib.git', 'https://git.example.com/acme/lib.git'],
    ['ssh://git@git.example.com/acme/lib.git', 'https://git.example.com/acme/lib.git'],
    ['ssh://git@git.example.com:2222/acme/lib.git', 'https://git.example.com/acme/lib.git'],
  ])('%s is asked for at %s', (url, expected) => {
    expect(address(url)).toBe(expected)
  })

  test.each([
    ['https://evil.example/acme/lib.git', 'it is at evil.example, but submodules are only cloned from git.example.com'],
    ['https://git.example.com.evil.example/x', 'it is at git.example.com.evil.example'],
    ['https://git.example.com@evil.example/x', 'it is at evil.example'],
    ['https://git.example.com:8443/acme/lib.git', 'it is at git.example.com:8443'],
    ['http://git.example.com/acme/lib.git', 'it is at http://git.example.com'],
    ['http://169.254.169.254/latest', 'it is at 169.254.169.254'],
    ['git@evil.example:acme/lib.git', 'git@evil.example:acme/lib.git is not a repository URL'],
    ['ssh://root@git.example.com/acme/lib.git', 'is not a repository URL'],
    ['ext::sh -c touch% /tmp/pwned', 'is not a repository URL'],
    ['file:///etc', 'is not a repository URL'],
    ['/etc', 'is not a repository URL'],
    ['--upload-pack=touch /tmp/pwned', 'is not a repository URL'],
    ['-u./payload', 'is not a repository URL'],
    ['http://', 'is not a repository URL'],
    ['', 'is not a repository URL'],
  ])('%s is refused and told', (url, why) => {
    expect(() => address(url)).toThrow(why)
    expect(() => address(url)).toThrow(/^The submodule lib cannot be cloned: /)
  })

  test('with credentials is refused for them, and they are not repeated', () => {
    const attempt = () => address('https://me:hunter2@git.example.com/acme/lib.git')
    expect(attempt).toThrow('its URL contains a user name or password')
    expect(attempt).not.toThrow(/hunter2/)
    expect(() => address('https://token@git.example.com/acme/lib.git')).toThrow('user name or password')
  })

  test('that .gitmodules does not tell is refused', () => {
    expect(() => address(undefined)).toThrow('.gitmodules does not give its URL')
  })
})

const modules = (...sections: [path: string, url: string][]) =>
  sections.map(([path, url]) => `[submodule "${path}"]\n\tpath = ${path}\n\turl = ${url}\n`).join('')

describe('a build with submodules', () => {
  let platform: Platform
  let canary: Server
  let canaryHits = 0
  let inner: string
  let lib: string
  beforeAll(async () => {
    canary = createServer((_request, response) => {
      canaryHits++
      response.end()
    })
    await new Promise<void>((resolve) => canary.listen(0, '127.0.0.1', resolve))
    platform = await startPlatform()
    inner = await createRepository(platform.repositories, 'acme/inner', { 'inner.txt': 'inner' })
    lib = await createRepository(
      platform.repositories,
      'acme/lib',
      { 'lib.txt': 'lib', '.gitmodules': modules(['nested', 'git@127.0.0.1:acme/inner.git']) },
      { submodules: { nested: inner } },
    )
  })
  afterAll(async () => {
    await platform.stop()
    canary.close()
  })

  async function deployed(
    name: string,
    files: Record<string, string>,
    submodules: Record<string, string>,
    body: object = {},
  ) {
    const repo = `acme/${name}-source`
    await createRepository(platform.repositories, repo, files, { submodules })
    const made = await platform.api.call('POST', '/projects', { body: { name, repo, ...body } })
    expect(made.status).toBe(201)
    const id = await platform.deploy(name)
    return { id, deployment: await platform.settled(id) }
  }

  test('publishes their files, also of those within others, by a relative address and the form of SSH', async () => {
    const files = { 'index.html': 'site', '.gitmodules': modules(['vendor/lib', '../lib.git']) }
    const { id, deployment } = await deployed('relative', files, { 'vendor/lib': lib })
    expect(deployment).toMatchObject({ state: 'READY', error: null })
    expect(await platform.file(id, 'vendor/lib/lib.txt')).toBe('lib')
    expect(await platform.file(id, 'vendor/lib/nested/inner.txt')).toBe('inner')
  })

  test('has them in its tree, whatever their path', async () => {
    const path = 'módulos/the lib'
    const build = `mkdir dist && cp "${path}/lib.txt" dist/index.html && cp "${path}/nested/inner.txt" dist/`
    const files = {
      'package.json': scripts({ build }),
      '.gitmodules': modules([path, platform.host.template.replace('{repo}', 'acme/lib')]),
    }
    const { id, deployment } = await deployed('built', files, { [path]: lib }, { framework: 'vite' })
    expect(deployment).toMatchObject({ state: 'READY', error: null })
    expect(await platform.file(id, 'index.html')).toBe('lib')
    expect(await platform.file(id, 'inner.txt')).toBe('inner')
    expect(await platform.log(id)).toContain(`Cloning submodule ${path} at`)
  })

  test('that are at another host ends in ERROR with that host, which is not asked', async () => {
    const { port } = canary.address() as AddressInfo
    const url = `http://127.0.0.1:${port}/acme/lib.git`
    const files = { 'index.html': '', '.gitmodules': modules(['lib', url]) }
    const { deployment } = await deployed('foreign', files, { lib })
    expect(deployment).toMatchObject({ state: 'ERROR', error: { code: 'clone_failed' } })
    expect(deployment.error.message).toContain(`The submodule lib cannot be cloned: it is at 127.0.0.1:${port}`)
    expect(canaryHits).toBe(0)
  })

  test('without .gitmodules ends in ERROR that names it', async () => {
    const { deployment } = await deployed('unnamed', { 'index.html': '' }, { lib })
    expect(deployment).toMatchObject({ state: 'ERROR', error: { code: 'clone_failed' } })
    expect(deployment.error.message).toContain('.gitmodules does not give its URL')
  })

  test('whose commit is gone ends in ERROR that names the submodule', async () => {
    const files = { 'index.html': '', '.gitmodules': modules(['lib', '../lib.git']) }
    const { deployment } = await deployed('gone', files, { lib: 'b'.repeat(40) })
    expect(deployment).toMatchObject({ state: 'ERROR', error: { code: 'clone_failed' } })
    expect(deployment.error.message).toContain('The commit bbbbbbb is not in the repository of the submodule lib.')
  })
})
