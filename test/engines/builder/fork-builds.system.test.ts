// Commits of a fork, once they are approved: built and served without anything that their author should not see.
import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { commitTo } from '../../helpers/repository.ts'
import { until } from '../../helpers/until.ts'
import { type Platform, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 120_000 })

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.stop())

const named = ['FOR_ALL', 'FOR_PREVIEWS', 'FOR_PRODUCTION']

/** A project with variables of every target, and the commit of a request that no branch has. */
async function newProject(name: string, files: Record<string, string>, body: object = {}) {
  const { api } = platform
  await platform.project(name, { 'index.html': 'here' }, body)
  for (const [key, target] of [
    ['FOR_ALL', 'all'],
    ['FOR_PREVIEWS', 'preview'],
    ['FOR_PRODUCTION', 'production'],
  ]) {
    await api.call('PUT', `/projects/${name}/env/${key}`, { body: { value: `secret of ${key}`, target } })
  }
  await commitTo(platform.repositories, `acme/${name}`, 'theirs', files)
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', join(platform.repositories, `acme/${name}.git`), ...args], { encoding: 'utf8' }).trim()
  const commit = git('rev-parse', 'theirs')
  git('update-ref', 'refs/pull/7/head', commit)
  git('update-ref', '-d', 'refs/heads/theirs')
  return commit
}

/** Tells of the request as GitHub does, approves its commit and returns the deployment. */
async function approve(name: string, commit: string): Promise<string> {
  const { api } = platform
  const { body: hook } = await api.call('POST', `/projects/${name}/hook`)
  const payload = JSON.stringify({
    action: 'opened',
    number: 7,
    pull_request: { title: 'x', head: { ref: 'theirs', sha: commit, repo: { full_name: 'mallory/site' } } },
    repository: { full_name: `acme/${name}` },
  })
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'pull_request',
    'x-hub-signature-256': `sha256=${createHmac('sha256', hook.secret).update(payload).digest('hex')}`,
  }
  const told = await api.app.inject({ method: 'POST', url: new URL(hook.url).pathname, payload, headers })
  expect(told.json().reason).toBe('approval_needed')
  const { body } = await api.call('POST', `/projects/${name}/pull-requests/7/approve`, { body: { commit } })
  return body.deployment
}

test('a build gets no variable of the project, and one of a branch does', async () => {
  const settings = { buildCommand: 'env; mkdir out; cp index.html out', outputDirectory: 'out' }
  const commit = await newProject('site', { 'index.html': 'theirs' }, { settings })
  const id = await approve('site', commit)
  expect(await platform.settled(id)).toMatchObject({ state: 'READY', untrusted: true, commitSha: commit })
  expect(await platform.file(id, 'index.html')).toBe('theirs')
  const log = await platform.log(id)
  expect(log).toContain('BERTH_REF=refs/pull/7/head')
  for (const name of [...named, 'secret of']) expect(log).not.toContain(name)
  const own = await platform.deploy('site')
  await platform.settled(own)
  expect(await platform.log(own)).toContain('FOR_PREVIEWS=')
})

test('a server gets none either', async () => {
  const server = `
    const { createServer } = require('node:http')
    console.log('has ' + JSON.stringify(Object.keys(process.env)))
    createServer((_, answer) => answer.end('here')).listen(process.env.PORT)`
  const files = { 'package.json': JSON.stringify({ scripts: { start: 'node server.js' } }), 'server.js': server }
  const commit = await newProject('server', files, { framework: 'node' })
  const id = await approve('server', commit)
  expect(await platform.settled(id)).toMatchObject({ state: 'READY', untrusted: true })
  await until(async () => (await platform.log(id)).includes('run: has ['))
  const log = await platform.log(id)
  expect(log).toContain('BERTH_COMMIT')
  for (const name of named) expect(log).not.toContain(name)
})

test('a host that serves only tips by their hash is asked for the whole request', async () => {
  const commit = await newProject('old', { 'index.html': 'theirs' })
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', join(platform.repositories, 'acme/old.git'), ...args], { encoding: 'utf8' }).trim()
  const who = ['-c', 'user.name=t', '-c', 'user.email=t@example.com']
  const newer = git(...who, 'commit-tree', '-m', 'newer', '-p', commit, `${commit}^{tree}`)
  git('update-ref', 'refs/pull/7/head', newer)
  // Only version 2 of the protocol serves every commit.
  platform.host.handlers.push((request) => {
    delete request.headers['git-protocol']
    return false
  })
  const id = await approve('old', commit)
  expect(await platform.settled(id)).toMatchObject({ state: 'READY', commitSha: commit })
  platform.host.handlers.length = 0
  expect(await platform.log(id)).toContain('unadvertised object')
})

test('submodules are not fetched with the access of the project', async () => {
  const commit = await newProject('modules', { '.gitmodules': '[submodule "x"]\npath = x\nurl = ../private\n' })
  const git = (input: string, ...args: string[]) =>
    execFileSync('git', ['-C', join(platform.repositories, 'acme/modules.git'), ...args], { encoding: 'utf8', input })
  const tree = git(`160000 commit ${'1'.repeat(40)}\tx\n`, 'mktree', '--missing').trim()
  const who = ['-c', 'user.name=t', '-c', 'user.email=t@example.com']
  const withModule = git('', ...who, 'commit-tree', '-m', 'x', '-p', commit, tree).trim()
  git('', 'update-ref', 'refs/pull/7/head', withModule)
  const access = { kind: 'token', username: 'x', token: 'y' }
  const put = await platform.api.call('PUT', '/projects/modules/repository-access', { body: access })
  expect(put.status, put.text).toBe(200)
  const id = await approve('modules', withModule)
  const { error } = await platform.settled(id)
  expect(error).toMatchObject({
    code: 'clone_failed',
    message: expect.stringContaining('For a fork, they are not fetched'),
  })
})
