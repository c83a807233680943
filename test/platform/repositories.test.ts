// What a repository host says of refs, branches and pushed commits: git over HTTP.
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRepositories, type Repositories } from '../../src/platform/git/repositories.ts'
import { type GitHost, startGitHost } from '../helpers/git-host.ts'
import { commitTo, createRepository } from '../helpers/repository.ts'

const timeoutMs = 20_000
let root: string
let host: GitHost
let repositories: Repositories
let first: string
let git: (...args: string[]) => string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-git-'))
  host = await startGitHost(root)
  repositories = createRepositories(host.template, null, process.env.PATH!)
  first = await createRepository(root, 'acme/site', { 'index.html': 'one' })
  git = (...args) => execFileSync('git', ['-C', join(root, 'acme/site.git'), ...args], { encoding: 'utf8' }).trim()
  git('branch', '-m', 'main', 'master')
  git('symbolic-ref', 'HEAD', 'refs/heads/master')
  await commitTo(root, 'acme/site', 'next', { 'index.html': 'two' })
})
afterAll(async () => {
  host.close()
  await rm(root, { recursive: true, force: true })
})

test('HEAD is the default branch, by its name', async () => {
  expect(await repositories.resolve('acme/site', 'HEAD', timeoutMs)).toEqual({
    found: first,
    isBranch: true,
    defaultBranch: 'master',
  })
  expect(await repositories.resolve('acme/site', 'next', timeoutMs)).toEqual({
    found: git('rev-parse', 'next'),
    isBranch: true,
    defaultBranch: 'master',
  })
})

test('a tag is none, unless a branch has its name', async () => {
  git('tag', 'v1', 'next')
  git('tag', 'next', 'master')
  const resolve = (ref: string) => repositories.resolve('acme/site', ref, timeoutMs)
  const next = git('rev-parse', 'refs/heads/next')
  expect(await resolve('v1')).toMatchObject({ found: next, isBranch: false })
  expect(await resolve('next')).toMatchObject({ found: next, isBranch: true })
  expect(await resolve(first)).toMatchObject({ found: first, isBranch: false })
  git('tag', '-d', 'v1', 'next')
})

test('branches are listed with the default one first', async () => {
  expect(await repositories.branches('acme/site', timeoutMs)).toEqual({
    defaultBranch: 'master',
    names: ['master', 'next'],
    count: 2,
  })
})

test('a pushed commit is present as the tip of its branch, and anywhere in the repository', async () => {
  const present = { commit: 'present', isReached: true, defaultBranch: 'master' }
  const tip = { branch: 'next', commit: git('rev-parse', 'next') }
  expect(await repositories.checkPush('acme/site', tip, timeoutMs)).toEqual(present)
  expect(await repositories.checkPush('acme/site', { ...tip, commit: first }, timeoutMs)).toEqual(present)
  expect(await repositories.checkPush('acme/site', { ...tip, branch: 'gone' }, timeoutMs)).toMatchObject({
    commit: 'present',
  })
})

test('a commit that the host does not have is missing, on a branch that is there and on one that is not', async () => {
  const commit = 'd'.repeat(40)
  for (const branch of ['next', 'gone']) {
    expect(await repositories.checkPush('acme/site', { branch, commit }, timeoutMs)).toMatchObject({
      commit: 'missing',
      isReached: true,
    })
  }
})

test('a host that is down leaves a commit unknown', async () => {
  host.handlers.push((_, response) => {
    response.writeHead(503).end()
    return true
  })
  expect(await repositories.checkPush('acme/site', { branch: 'next', commit: first }, timeoutMs)).toEqual({
    commit: 'unknown',
    isReached: false,
    defaultBranch: null,
  })
  expect(await repositories.branches('acme/site', timeoutMs)).toBeNull()
  host.handlers.length = 0
})
