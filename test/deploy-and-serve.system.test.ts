// From POST to page: API, worker, runner and edge in one program, with a repository served over HTTP.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, get } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startApi, type TestApi } from './helpers/api.ts'
import { type GitHost, startGitHost } from './helpers/git-host.ts'
import { createRepository } from './helpers/repository.ts'
import { until } from './helpers/until.ts'

vi.setConfig({ testTimeout: 90_000 })

const run = promisify(execFile)

let root: string
let host: GitHost
let api: TestApi
let edgePort: number
let berth: ChildProcess

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-git-'))
  host = await startGitHost(root)
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  edgePort = (listener.address() as { port: number }).port
  listener.close()
  api = await startApi({ GIT_URL_TEMPLATE: host.template, EDGE_HTTP_PORT: String(edgePort) })
  berth = spawn(process.execPath, ['dist/src/cli.js', 'serve', '--roles', 'worker,runner,edge'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: process.env.PATH,
      DRAIN_SECONDS: '0',
      DATABASE_URL: api.databaseUrl,
      DATA_DIR: api.config.dataDir,
      GIT_URL_TEMPLATE: host.template,
      EDGE_HTTP_PORT: String(edgePort),
      METRICS_PORT: '0',
      SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    },
  })
})
afterAll(async () => {
  berth.kill('SIGTERM')
  expect((await once(berth, 'exit'))[0]).toBe(0)
  await api.stop()
  host.close()
  await rm(root, { recursive: true, force: true })
})

const agent = new Agent({ keepAlive: true })

function visit(address: string, path = '/'): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: edgePort, path, agent, headers: { host: new URL(address).host } }
    const request = get(options, async (response) => {
      resolve({ status: response.statusCode!, body: Buffer.concat(await response.toArray()).toString() })
    })
    request.on('error', reject)
  })
}

async function deploy(project: string): Promise<{ url: string; state: string }> {
  const { body } = await api.call('POST', '/deployments', { body: { project, production: true } })
  return (await api.call('GET', `/deployments/${body.id}?wait=60`)).body
}

/** Pushes another commit to main over HTTP. */
async function push(repo: string, name: string, text: string): Promise<void> {
  const tree = await mkdtemp(join(tmpdir(), 'berth-push-'))
  const git = (...args: string[]) => run('git', ['-C', tree, '-c', 'user.name=t', '-c', 'user.email=t@t', ...args])
  await git('clone', '-q', host.template.replace('{repo}', repo), '.')
  await writeFile(join(tree, name), text)
  await git('commit', '-qam', 'next')
  await git('push', '-q')
  await rm(tree, { recursive: true })
}

const shows = (address: string, wanted: string) => until(async () => (await visit(address)).body === wanted)

test('a static site is built, served at its own address and at production, and replaced by the next push', async () => {
  await createRepository(root, 'acme/site', { 'index.html': 'one' })
  const { body: project } = await api.call('POST', '/projects', { body: { name: 'site', repo: 'acme/site' } })
  const first = await deploy('site')
  expect(first.state).toBe('READY')
  await shows(first.url, 'one')
  await shows(project.productionUrl, 'one')
  await push('acme/site', 'index.html', 'two')
  const second = await deploy('site')
  await shows(project.productionUrl, 'two')
  await shows(first.url, 'one')
  await shows(second.url, 'two')
})

test('a server project is run and proxied, and the next deployment takes over without a failed request', async () => {
  const server = (version: string) => `
    const http = require('node:http')
    console.log('listening as ${version}')
    http.createServer((request, response) => {
      setTimeout(() => response.end('${version} ' + (process.env.GREETING || '') + request.url), 5)
    }).listen(process.env.PORT)`
  const files = { 'package.json': JSON.stringify({ scripts: { start: 'node server.js' } }), 'server.js': server('v1') }
  await createRepository(root, 'acme/app', files)
  const { body: project } = await api.call('POST', '/projects', {
    body: { name: 'app', framework: 'node', repo: 'acme/app' },
  })
  await api.call('PUT', '/projects/app/env/GREETING', { body: { value: 'hello' } })
  const first = await deploy('app')
  expect(first.state).toBe('READY')
  await shows(project.productionUrl, 'v1 hello/')

  const answers: string[] = []
  let loading = true
  const visitors = Array.from({ length: 6 }, async () => {
    while (loading) {
      const { status, body } = await visit(project.productionUrl, '/x')
      answers.push(`${status} ${body}`)
    }
  })
  await push('acme/app', 'server.js', server('v2'))
  const second = await deploy('app')
  expect(second.state).toBe('READY')
  await shows(project.productionUrl, 'v2 hello/')
  const before = answers.length
  await until(() => answers.length > before + 50)
  loading = false
  await Promise.all(visitors)
  expect([...new Set(answers)].sort()).toEqual(['200 v1 hello/x', '200 v2 hello/x'])
  const { body: log } = await api.call('GET', `/deployments?project=app&limit=1`)
  const lines = await api.call('GET', `/deployments/${log.deployments[0].id}/logs`)
  expect(lines.body.lines.map((line: { text: string }) => line.text)).toContain('listening as v2')
})
