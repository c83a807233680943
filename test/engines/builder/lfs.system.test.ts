import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type LfsStore, pointerTo, serveLfs } from '../../helpers/lfs.ts'
import { createRepository } from '../../helpers/repository.ts'
import { type Platform, scripts, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 120_000 })

function isInstalled(): boolean {
  try {
    execFileSync('which', ['git-lfs'])
    return true
  } catch {
    if (process.env.BERTH_REQUIRE_PEERS === '1') throw new Error('git-lfs is not installed')
    return false
  }
}

const picture = Buffer.from(Array.from({ length: 100_000 }, (_, at) => (at * 7919) % 251))
const attributes = '# pictures\n*.png filter=lfs diff=lfs merge=lfs -text\n'

async function deployed(platform: Platform, name: string, files: Record<string, string>, body: object = {}) {
  await platform.project(name, files, body)
  const id = await platform.deploy(name)
  return { id, deployment: await platform.settled(id) }
}

/** What is published, in bytes. */
async function published(platform: Platform, id: string, path: string): Promise<Buffer> {
  const stored = (await platform.artifacts.read(id))!.files[path]!
  return readFile(platform.artifacts.pathOf(stored.hash))
}

describe.skipIf(!isInstalled())('a repository with Git LFS, by the git-lfs of this machine', () => {
  let platform: Platform
  let lfs: LfsStore
  let canary: Server
  let canaryUrl: string
  let canaryHits = 0
  beforeAll(async () => {
    platform = await startPlatform()
    lfs = serveLfs(platform.host)
    canary = createServer((_request, response) => {
      canaryHits++
      response.end()
    })
    await new Promise<void>((resolve) => canary.listen(0, '127.0.0.1', resolve))
    canaryUrl = `http://127.0.0.1:${(canary.address() as AddressInfo).port}`
  })
  afterAll(async () => {
    await platform.stop()
    canary.close()
  })

  test('the pointer of these tests is the one that git-lfs makes', async () => {
    const path = join(platform.repositories, 'picture')
    await writeFile(path, picture)
    const made = execFileSync('git', ['lfs', 'pointer', `--file=${path}`], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    expect(lfs.add(picture)).toBe(made)
  })

  test('publishes the real bytes without a build', async () => {
    const files = { 'index.html': '<img src=a.png>', '.gitattributes': attributes, 'a.png': lfs.add(picture) }
    const { id, deployment } = await deployed(platform, 'lfs-plain', files)
    expect(deployment).toMatchObject({ state: 'READY', error: null })
    expect((await published(platform, id, 'a.png')).equals(picture)).toBe(true)
    expect(await platform.file(id, 'index.html')).toBe('<img src=a.png>')
    expect(await platform.log(id)).toContain('Fetching files from Git LFS')
  })

  test('has the real bytes in the tree of a build, and asks its own host only, whatever .lfsconfig says', async () => {
    const files = {
      'package.json': scripts({ build: 'mkdir dist && cp a.png dist/ && git status --short > dist/status.txt' }),
      '.gitattributes': attributes,
      '.lfsconfig': [
        `[lfs]\n\turl = ${canaryUrl}/lfs\n\tpushurl = ${canaryUrl}/push\n`,
        `[remote "origin"]\n\tlfsurl = ${canaryUrl}/remote\n`,
        `[lfs "customtransfer.x"]\n\tpath = /bin/false\n`,
      ].join(''),
      'a.png': lfs.add(picture),
    }
    const { id, deployment } = await deployed(platform, 'lfs-built', files, { framework: 'vite' })
    expect(deployment).toMatchObject({ state: 'READY', error: null })
    expect((await published(platform, id, 'a.png')).equals(picture)).toBe(true)
    expect(canaryHits).toBe(0)
    expect(platform.host.hits).toContain('/acme/lfs-built.git/info/lfs/objects/batch')
  })

  test('whose objects are gone ends in ERROR lfs_unavailable', async () => {
    const gone = pointerTo(createHash('sha256').update('gone').digest('hex'), 4)
    const files = { 'index.html': '', '.gitattributes': attributes, 'a.png': gone }
    const { id, deployment } = await deployed(platform, 'lfs-gone', files)
    expect(deployment).toMatchObject({ state: 'ERROR', error: { code: 'lfs_unavailable' } })
    expect(deployment.error.message).toContain('could not be fetched; the log says why')
    expect(await platform.log(id)).toContain('no such object')
    expect(await platform.artifacts.read(id)).toBeNull()
  })

  test('within a submodule ends in ERROR that says so', async () => {
    const module = { '.gitattributes': attributes, 'a.png': lfs.add(picture) }
    const lib = await createRepository(platform.repositories, 'acme/lfs-module', module)
    const modules = '[submodule "lib"]\n\tpath = lib\n\turl = ../lfs-module.git\n'
    await createRepository(
      platform.repositories,
      'acme/lfs-parent',
      { 'index.html': '', '.gitmodules': modules },
      { submodules: { lib } },
    )
    await platform.api.call('POST', '/projects', { body: { name: 'lfs-parent', repo: 'acme/lfs-parent' } })
    const deployment = await platform.settled(await platform.deploy('lfs-parent'))
    expect(deployment).toMatchObject({ state: 'ERROR', error: { code: 'lfs_unavailable' } })
    expect(deployment.error.message).toContain('lib/.gitattributes keeps files in Git LFS, which we do not fetch for')
  })
})

describe('an installation without git-lfs', () => {
  let platform: Platform
  let programs: string
  beforeAll(async () => {
    programs = await mkdtemp(join(tmpdir(), 'berth-programs-'))
    await symlink(execFileSync('which', ['git'], { encoding: 'utf8' }).trim(), join(programs, 'git'))
    platform = await startPlatform({ PATH: programs })
  })
  afterAll(async () => {
    await platform.stop()
    await rm(programs, { recursive: true })
  })

  test('ends such a build in ERROR lfs_unavailable that names the file and says what to do', async () => {
    const files = { 'index.html': '', 'img/.gitattributes': attributes, 'img/a.png': pointerTo('0'.repeat(64), 9) }
    const { deployment } = await deployed(platform, 'none', files)
    expect(deployment).toMatchObject({ state: 'ERROR', error: { code: 'lfs_unavailable' } })
    expect(deployment.error.message).toContain('img/.gitattributes keeps files in Git LFS')
    expect(deployment.error.message).toContain('apt install git-lfs')
  })

  test('builds what only talks of it', async () => {
    const files = { 'index.html': 'hi', '.gitattributes': '# *.png filter=lfs\n*.txt text\n' }
    const { id, deployment } = await deployed(platform, 'talks', files)
    expect(deployment).toMatchObject({ state: 'READY', error: null })
    expect(await platform.file(id, 'index.html')).toBe('hi')
  })
})
