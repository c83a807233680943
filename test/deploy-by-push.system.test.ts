// From `git push` to page: an HTTP repository whose post-receive hook signs and sends what GitHub would.
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer, get, type Server } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApi, type TestApi } from './helpers/api.ts'
import { type GitHost, startGitHost } from './helpers/git-host.ts'
import { createRepository } from './helpers/repository.ts'

vi.setConfig({ testTimeout: 90_000 })
const patiently = { timeout: 60_000, interval: 50 }

const run = promisify(execFile)

function isInstalled(program: string): boolean {
  try {
    execFileSync('which', [program])
    return true
  } catch {
    if (process.env.BERTH_REQUIRE_PEERS === '1') throw new Error(`${program} is not installed`)
    return false
  }
}
// The programs that the repository's hook uses.
const installed = ['curl', 'openssl'].every(isInstalled)

let root: string
let host: GitHost
let statusHost: Server
let api: TestApi
let apiAddress: string
let edgePort: number
let berth: ChildProcess
const statuses: { path: string; state: string; target_url?: string }[] = []

async function listening(server: Server | ReturnType<typeof createServer>): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

beforeAll(async () => {
  if (!installed) return
  root = await mkdtemp(join(tmpdir(), 'berth-git-'))
  host = await startGitHost(root)
  statusHost = createHttpServer(async (request, response) => {
    statuses.push({ path: request.url!, ...JSON.parse(Buffer.concat(await request.toArray()).toString()) })
    response.writeHead(201).end('{}')
  })
  await listening(statusHost)
  const free = createServer()
  edgePort = await listening(free)
  free.close()
  const environment = {
    GIT_URL_TEMPLATE: host.template,
    EDGE_HTTP_PORT: String(edgePort),
    EDGE_HTTPS_PORT: '0',
    WEBHOOK_ALLOW_PRIVATE: 'true',
    // With one build at a time, the next can start only when the previous one has ended.
    BUILD_CONCURRENCY: '1',
  }
  api = await startApi(environment)
  apiAddress = await api.listen()
  berth = spawn(process.execPath, ['dist/src/cli.js', 'serve', '--roles', 'worker,edge'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...environment,
      PATH: process.env.PATH,
      DRAIN_SECONDS: '0',
      DATABASE_URL: api.databaseUrl,
      DATA_DIR: api.config.dataDir,
      METRICS_PORT: '0',
      SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    },
  })
})
afterAll(async () => {
  if (!installed) return
  berth.kill('SIGTERM')
  expect((await once(berth, 'exit'))[0]).toBe(0)
  await api.stop()
  host.close()
  statusHost.close()
  await rm(root, { recursive: true, force: true })
})

function visit(address: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { host: new URL(address).host }
    get({ host: '127.0.0.1', port: edgePort, path: '/', headers }, async (response) => {
      resolve(Buffer.concat(await response.toArray()).toString())
    }).on('error', reject)
  })
}

const served = (address: string, text: string) =>
  vi.waitFor(async () => expect(await visit(address)).toBe(text), patiently)

/** What a repository host does after a push, in shell: sends one signed payload per ref. */
const postReceive = (url: string, secret: string, repo: string) => `#!/bin/sh
while read before after ref; do
  body='{"ref":"'$ref'","before":"'$before'","after":"'$after'","repository":{"full_name":"${repo}"}}'
  signature=$(printf %s "$body" | openssl dgst -sha256 -hmac '${secret}' -r | cut -d' ' -f1)
  curl -sS --max-time 10 -H 'content-type: application/json' -H 'x-github-event: push' \\
    -H "x-github-delivery: $after-$ref" -H "x-hub-signature-256: sha256=$signature" -d "$body" '${url}' >&2
done
`

/** A project whose repository reports every push to Berth, and a working copy of it. */
async function newSite(name: string, settings: object = {}) {
  const repo = `acme/${name}`
  await createRepository(root, repo, { 'index.html': 'first' })
  const { body: project } = await api.call('POST', '/projects', { body: { name, repo, settings } })
  const { body: hook } = await api.call('POST', `/projects/${name}/hook`)
  const script = postReceive(apiAddress + new URL(hook.url).pathname, hook.secret, repo)
  await mkdir(join(root, `${repo}.git/hooks`), { recursive: true })
  await writeFile(join(root, `${repo}.git/hooks/post-receive`), script, { mode: 0o755 })
  const tree = join(root, name)
  await run('git', ['clone', '-q', host.template.replace('{repo}', repo), tree])
  const git = async (...args: string[]) =>
    run('git', ['-C', tree, '-c', 'user.name=t', '-c', 'user.email=t@t', ...args])
  return {
    productionUrl: project.productionUrl as string,
    git,
    /** Sends a signed payload like a host, and returns the response. */
    async tell(event: string, body: object) {
      const text = JSON.stringify({ ...body, repository: { full_name: repo } })
      const headers = {
        'content-type': 'application/json',
        'x-github-event': event,
        'x-hub-signature-256': `sha256=${createHmac('sha256', hook.secret).update(text).digest('hex')}`,
      }
      const answer = await fetch(apiAddress + new URL(hook.url).pathname, { method: 'POST', headers, body: text })
      return (await answer.json()) as { deployment: string | null; reason: string }
    },
    /** Pushes, and returns Berth's response as `git push` shows it. */
    push: async (refspec: string) => (await git('push', '-q', 'origin', refspec)).stderr,
    async commit(files: Record<string, string>): Promise<string> {
      for (const [path, text] of Object.entries(files)) await writeFile(join(tree, path), text)
      await git('add', '-A')
      await git('commit', '-qm', 'next')
      return (await git('rev-parse', 'HEAD')).stdout.trim()
    },
    async deployments(): Promise<{ id: string; url: string; ref: string; state: string; production: boolean }[]> {
      return (await api.call('GET', `/deployments?project=${name}`)).body.deployments
    },
  }
}

describe.skipIf(!installed)('a git push', () => {
  test('is built and served, to production or as a preview, and its commit hears of it', async () => {
    const site = await newSite('site')
    const { port } = statusHost.address() as AddressInfo
    const target = { provider: 'github', apiUrl: `http://127.0.0.1:${port}`, token: 'x' }
    expect((await api.call('PUT', '/projects/site/hook/status', { body: target })).status).toBe(200)

    const pushed = await site.commit({ 'index.html': 'two' })
    expect(await site.push('main')).toContain('"reason":"deployed"')
    await served(site.productionUrl, 'two')

    await site.git('checkout', '-qb', 'feature/three')
    await site.commit({ 'index.html': 'three' })
    await site.push('feature/three')
    const [preview] = await site.deployments()
    expect(preview).toMatchObject({ ref: 'feature/three', production: false })
    await served(preview!.url, 'three')
    expect(await visit(site.productionUrl)).toBe('two')

    expect(await site.push(':feature/three')).toContain('"reason":"branch_deleted"')
    await site.git('tag', 'v1')
    expect(await site.push('v1')).toContain('"reason":"not_a_branch"')
    expect(await site.deployments()).toHaveLength(2)

    const heard = () => statuses.filter(({ path }) => path === `/repos/acme/site/statuses/${pushed}`).at(-1)
    await vi.waitFor(() => expect(heard()?.state).toBe('success'), patiently)
    expect(await visit(heard()!.target_url!)).toBe('two')
  })

  test('ends the build of the one before it, and takes its place', async () => {
    const settings = { buildCommand: 'test ! -e slow || sleep 300', outputDirectory: '.' }
    const site = await newSite('slow', settings)
    await site.commit({ slow: '', 'index.html': 'never' })
    await site.push('main')
    const [first] = await site.deployments()
    const log = async () => (await api.call('GET', `/deployments/${first!.id}/logs`)).text
    await vi.waitFor(async () => expect(await log()).toContain('sleep 300'), patiently)

    await site.git('rm', '-q', 'slow')
    await site.commit({ 'index.html': 'fast' })
    expect(await site.push('main')).toContain(`${first!.id} was canceled for it`)
    await served(site.productionUrl, 'fast')
    expect((await site.deployments()).map(({ state }) => state)).toEqual(['READY', 'CANCELED'])
  })

  test('of a commit that is not there leaves the build in progress alone', async () => {
    const settings = { buildCommand: 'test ! -e slow || sleep 300', outputDirectory: '.' }
    const site = await newSite('kept', settings)
    await site.commit({ slow: '', 'index.html': 'slow' })
    await site.push('main')
    const [good] = await site.deployments()
    const log = async () => (await api.call('GET', `/deployments/${good!.id}/logs`)).text
    await vi.waitFor(async () => expect(await log()).toContain('sleep 300'), patiently)
    const missing = { ref: 'refs/heads/main', after: 'd'.repeat(40) }
    expect(await site.tell('push', missing)).toMatchObject({ deployment: null, reason: 'commit_not_found' })
    expect(await site.deployments()).toMatchObject([{ id: good!.id, state: 'BUILDING' }])
    await api.call('POST', `/deployments/${good!.id}/cancel`)
  })
})

describe.skipIf(!installed)('a pull request', () => {
  test('of a fork is served once its commit is approved, at a URL of its own, without any variable', async () => {
    const settings = { buildCommand: 'echo "<$SECRET>" > index.html', outputDirectory: '.' }
    const site = await newSite('forked', settings)
    await api.call('PUT', '/projects/forked/env/SECRET', { body: { value: 'not for forks' } })
    await site.push('main')
    await site.git('checkout', '-qb', 'theirs')
    const commit = await site.commit({ 'page.html': 'theirs' })
    await site.git('push', '-q', 'origin', 'HEAD:refs/pull/7/head')
    const head = { ref: 'theirs', sha: commit, repo: { full_name: 'mallory/forked' } }
    const told = await site.tell('pull_request', { action: 'opened', number: 7, pull_request: { title: 'x', head } })
    expect(told).toMatchObject({ deployment: null, reason: 'approval_needed' })
    const { body } = await api.call('POST', '/projects/forked/pull-requests/7/approve', { body: { commit } })
    const { url, branchUrl } = (await api.call('GET', `/deployments/${body.deployment}`)).body
    await served(url, '<>\n')
    await served(branchUrl, '<>\n')
    expect(
      await site.tell('pull_request', { action: 'closed', number: 7, pull_request: { title: 'x', head } }),
    ).toEqual({
      deployment: null,
      reason: 'pull_request_closed',
      detail: 'The pull request was closed. Its previews are deleted in 24 hours.',
    })
  })
})
