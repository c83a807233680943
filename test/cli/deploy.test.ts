// `berth deploy`, and servers and networks that are not what one wishes. A server of the test answers as the API does.
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type CommandLine, openCommandLine } from '../helpers/command-line.ts'

type Sent = { path: string; sha256: string; size: number; mode?: number }

let cli: CommandLine
let folder: string
let server: Server
let url: string
let asked: string[]
let stored: Map<string, Buffer>
let files: Sent[]
let pieces: Map<string, Buffer>
/** How the deployment ends, and what may go wrong on the way. */
let state: string
let name: string
/** What the server says of production beside the deployment. */
let production: object
let wantsProduction: boolean
let holdUploads: boolean

const env = () => ({ BERTH_URL: url, BERTH_TOKEN: 'brt_test' })
const deploy = (...args: string[]) => cli.run(['deploy', folder, '--project', 'site', ...args], { env: env() })

const listen = (one: Server) =>
  new Promise<number>((resolve) => {
    one.listen(0, '127.0.0.1', () => resolve((one.address() as AddressInfo).port))
  })

beforeAll(async () => {
  cli = await openCommandLine()
}, 60_000)
afterAll(() => cli.remove())

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-site-'))
  asked = []
  stored = new Map()
  files = []
  pieces = new Map()
  state = 'READY'
  name = 'site'
  production = {}
  wantsProduction = false
  holdUploads = false
  server = createServer((request, response) => void answer(request, response))
  url = `http://127.0.0.1:${await listen(server)}`
})
afterEach(async () => {
  server.closeAllConnections()
  server.close()
  await rm(folder, { recursive: true, force: true })
})

const deployment = () => ({
  ...{
    id: 'dpl_1',
    project: name,
    state,
    ref: '',
    commit: '',
    production: wantsProduction,
    url: 'https://site.test',
    steps: [],
    ...production,
  },
  error: state === 'ERROR' ? { code: 'build_failed', message: 'The build \u001b[31mfailed' } : null,
  uploads: { missing: files.map(({ sha256 }) => sha256).filter((one) => !stored.has(one)) },
})

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  const { method, url: path = '' } = request
  asked.push(`${method} ${path}`)
  const send = (value: unknown, status = 200) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  const keep = (content: Buffer) => stored.set(createHash('sha256').update(content).digest('hex'), content)
  if (path === '/api/deployments' && method === 'POST') {
    const made = JSON.parse(body.toString())
    files = made.source.files
    wantsProduction = made.production
    return void send(deployment(), 201)
  }
  if (path.startsWith('/api/uploads')) {
    if (holdUploads) return
    if (method === 'POST') {
      for (const content of contentsOf(body)) keep(content)
      return void send({ uploads: [] })
    }
    // In pieces, if it is large.
    const [, from, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(request.headers['content-range'] ?? '') ?? []
    const whole = from ? Buffer.concat([pieces.get(path) ?? Buffer.alloc(0), body]) : body
    if (from) expect(Number(from)).toBe(whole.length - body.length)
    pieces.set(path, whole)
    const complete = whole.length === Number(total ?? body.length)
    if (complete) keep(whole)
    return void send({ complete, offset: whole.length })
  }
  if (path.endsWith('/logs')) {
    const line = {
      seq: 1,
      stream: 'stdout',
      step: 'build',
      text: '\u001b[31mred\u001b[0m \u001b]0;title\u0007 \u009b2J',
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    return void response.end(`id: 1\ndata: ${JSON.stringify(line)}\n\nevent: end\ndata: {"state":"${state}"}\n\n`)
  }
  if (path.startsWith('/api/projects?')) {
    return void send({ projects: [{ name, framework: 'other', productionUrl: 'x', createdAt: '' }], nextCursor: null })
  }
  send(deployment())
}

/** The files of a tar archive. */
function* contentsOf(archive: Buffer): Generator<Buffer> {
  for (let at = 0; archive[at]; ) {
    const length = Number.parseInt(archive.toString('latin1', at + 124, at + 135), 8)
    const sha256 = archive.toString('latin1', at, at + 64)
    const content = archive.subarray(at + 512, at + 512 + length)
    expect(createHash('sha256').update(content).digest('hex')).toBe(sha256)
    yield content
    at += 512 + Math.ceil(length / 512) * 512
  }
}

async function write(paths: Record<string, string | Buffer>): Promise<void> {
  for (const [path, content] of Object.entries(paths)) {
    await mkdir(join(folder, path, '..'), { recursive: true })
    await writeFile(join(folder, path), content)
  }
}

test('a folder is uploaded but for what is ignored, and only what changed travels again', async () => {
  await write({
    'index.html': 'hello',
    'src/main.js': 'main',
    'src/keep.log': 'kept',
    'large.bin': Buffer.alloc(5 << 20, 1),
    'dist/out.js': 'built',
    'secret.txt': 'no',
    'a.log': 'no',
    '.git/config': 'no',
    'node_modules/x/index.js': 'no',
    'src/node_modules/y.js': 'no',
    '.gitignore': '*.log\n/dist/\n!keep.log\n',
    '.berthignore': 'secret.*\n',
  })
  await symlink('index.html', join(folder, 'link.html'))
  const first = await deploy('--prod', '--json')
  expect(first).toMatchObject({ code: 0 })
  expect(JSON.parse(first.stdout)).toMatchObject({ id: 'dpl_1', state: 'READY' })
  const paths = files.map(({ path }) => path)
  const plain = ['index.html', 'large.bin', 'link.html', 'src/keep.log', 'src/main.js']
  expect(paths).toEqual(['.berthignore', '.gitignore', ...plain])
  expect(files.find(({ path }) => path === 'link.html')?.mode).toBe(0o120000)
  expect(asked.filter((one) => /uploads/.test(one)).every((one) => /^(POST|PUT) /.test(one))).toBe(true)
  expect(asked.filter((one) => one === 'POST /api/uploads')).toHaveLength(1)

  asked = []
  await write({ 'index.html': 'hello again' })
  const again = await deploy()
  expect(again.stdout).toBe('https://site.test\n')
  const sha256 = createHash('sha256').update('hello again').digest('hex')
  expect(asked.filter((one) => /uploads/.test(one))).toEqual([`PUT /api/uploads/${sha256}`])
}, 60_000)

test('a deployment that cannot take over because production is pinned has an exit code of its own, and says what to do', async () => {
  await write({ 'index.html': 'x' })
  production = { current: false, pinned: 'dpl_0' }
  const ended = await deploy('--prod')
  expect(ended).toMatchObject({ code: 8, stdout: 'https://site.test\n' })
  expect(ended.stderr).toContain('Production is pinned to dpl_0. Run `berth promote dpl_1` to switch.')
  expect((await deploy()).code).toBe(0)
  production = { current: true, pinned: null }
  expect((await deploy('--prod')).code).toBe(0)
}, 60_000)

test('files of secrets are not uploaded unless they are named', async () => {
  await write({
    'index.html': 'x',
    '.env': 'A=1',
    'app/.env.local': 'B=2',
    '.env.example': 'A=',
    '.env.production': 'C=3',
  })
  const first = await deploy()
  expect(first).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(
      'Not uploaded because they may contain secrets: .env, .env.production, app/.env.local',
    ),
  })
  expect(files.map(({ path }) => path)).toEqual(['.env.example', 'index.html'])
  // Line ends of Windows, too.
  await write({ '.berthignore': '!.env.production\r\n' })
  await deploy()
  expect(files.map(({ path }) => path)).toEqual(['.berthignore', '.env.example', '.env.production', 'index.html'])
}, 60_000)

test('links are sent as links, even in a circle', async () => {
  await write({ 'a/index.html': 'x' })
  await symlink('..', join(folder, 'a/up'))
  await symlink('self', join(folder, 'self'))
  expect((await deploy()).code).toBe(0)
  expect(files.map(({ path, mode }) => [path, mode])).toEqual([
    ['a/index.html', undefined],
    ['a/up', 0o120000],
    ['self', 0o120000],
  ])
}, 60_000)

test.each([
  ['caf\xe9.txt', 'caf\\xe9.txt is not UTF-8'],
  ['a\x1b[2J\n.txt', 'a\\x1b[2J\\x0a.txt has a control character'],
])(
  'a file named %j is refused before anything is sent',
  async (raw, told) => {
    await write({ 'docs/index.html': 'x' })
    await writeFile(Buffer.concat([Buffer.from(join(folder, 'docs/')), Buffer.from(raw, 'latin1')]), 'x')
    const ended = await deploy()
    expect(ended).toMatchObject({ code: 2, stdout: '' })
    expect(ended.stderr).toBe(`Error: The name of docs/${told}.\nRename the file, or list it in .berthignore.\n`)
    expect(asked).toEqual([])
    await write({ '.berthignore': 'docs/*.txt\n', 'docs/\ufffd.html': 'x' })
    expect((await deploy()).code).toBe(0)
    expect(files.map(({ path }) => path)).toEqual(['.berthignore', 'docs/index.html', 'docs/\ufffd.html'])
  },
  60_000,
)

test('a build that fails is exit code 1, and nothing of its log moves the cursor', async () => {
  await write({ 'index.html': 'x' })
  state = 'ERROR'
  const ended = await deploy()
  expect(ended).toMatchObject({ code: 1, stdout: '' })
  expect(ended.stderr).toContain('build_failed')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not come.
  expect(ended.stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
}, 60_000)

test('names of a hostile server reach the terminal written out', async () => {
  name = 'a\u001b[2J\u202eb\u009b'
  for (const args of [
    ['projects', 'ls'],
    ['projects', 'ls', '--json'],
  ]) {
    const { code, stdout } = await cli.run(args, { env: env() })
    expect(code).toBe(0)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not come.
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    if (args.length === 3) expect(JSON.parse(stdout)[0].name).toBe(name)
  }
}, 60_000)

test('Ctrl-C in the middle of an upload cancels the deployment', async () => {
  await write({ 'index.html': 'x' })
  holdUploads = true
  const running = cli.run(['deploy', folder, '-p', 'site'], {
    env: { ...env(), NODE_OPTIONS: '' },
    interruptWhen: () => false,
  })
  await expect.poll(() => asked.some((one) => one.startsWith('PUT ')), { timeout: 20_000 }).toBe(true)
  expect(cli.interrupt()).toBe(true)
  expect((await running).code).toBe(130)
  expect(asked).toContain('POST /api/deployments/dpl_1/cancel')
}, 60_000)

test('without a terminal nothing is asked, and without files nothing is sent', async () => {
  expect(await deploy()).toMatchObject({ code: 2, stderr: expect.stringContaining('no files') })
  const gone = await cli.run(['projects', 'rm', 'site'], { env: env() })
  expect(gone).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
  const unlinked = await cli.run(['deploy', folder], { env: env(), cwd: folder })
  expect(unlinked).toMatchObject({ code: 2, stderr: expect.stringContaining('--project') })
  expect(asked).toEqual([])
}, 60_000)

test('requests go through the proxy of the environment, but for what NO_PROXY names', async () => {
  const seen: string[] = []
  const proxy = createServer((request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers['proxy-authorization']}`)
    void answer(
      Object.assign(request, { url: new URL(request.url!).pathname + new URL(request.url!).search }),
      response,
    )
  })
  proxy.on('connect', (request, socket) => {
    seen.push(`CONNECT ${request.url}`)
    const onward = connect(1, '127.0.0.1')
    onward.on('error', () => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'))
  })
  const address = `http://user:pass@127.0.0.1:${await listen(proxy)}`
  const listed = await cli.run(['projects', 'ls'], {
    env: { ...env(), BERTH_URL: 'http://berth.localhost', HTTP_PROXY: address },
  })
  expect(listed.code).toBe(0)
  const basic = `Basic ${Buffer.from('user:pass').toString('base64')}`
  expect(seen).toEqual([`GET http://berth.localhost/api/projects?limit=100 ${basic}`])
  const direct = await cli.run(['projects', 'ls'], {
    env: { ...env(), HTTP_PROXY: address, NO_PROXY: 'x.test,127.0.0.1' },
  })
  expect(direct.code).toBe(0)
  expect(seen).toHaveLength(1)
  const tunnel = { BERTH_URL: 'https://berth.test', BERTH_TOKEN: 'brt_test', https_proxy: address }
  expect(await cli.run(['api', '/projects', '-X', 'PATCH'], { env: tunnel })).toMatchObject({ code: 7, stdout: '' })
  expect(seen[1]).toBe('CONNECT berth.test:443')
  proxy.closeAllConnections()
  proxy.close()
}, 60_000)
