// The command line against a server that is slow, broken or hostile: a clear sentence, an exit code, and an end.
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { messagesOf } from '../../cli/src/kit/messages.ts'
import { type CommandLine, openCommandLine } from '../helpers/command-line.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

let cli: CommandLine
let folder: string
let servers: Server[] = []
let asked: string[] = []

beforeAll(async () => {
  cli = await openCommandLine()
  folder = await mkdtemp(join(tmpdir(), 'berth-site-'))
  await writeFile(join(folder, 'index.html'), 'x')
}, 60_000)
afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
  await cli.remove()
})
afterEach(() => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  servers = []
  asked = []
})

async function listen(answer: Answer): Promise<string> {
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    request.resume().on('end', () => answer(request, response))
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const made = { id: 'dpl_1', url: 'https://site.test', state: 'BUILDING', steps: [], error: null }
const send = (response: ServerResponse, body: unknown, status = 200) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
const isCreation = ({ method, url }: IncomingMessage) => method === 'POST' && url === '/api/deployments'

async function deploy(answer: Answer, env: Record<string, string> = {}) {
  const server = { BERTH_URL: await listen(answer), BERTH_TOKEN: 'brt_test' }
  return cli.run(['deploy', folder, '-p', 'site'], { env: { ...server, ...env } })
}

async function interruptAtCreation(answer: Answer) {
  const running = deploy(answer)
  await expect.poll(() => asked, { timeout: 20_000 }).toContain('POST /api/deployments')
  expect(cli.interrupt()).toBe(true)
  return running
}

test.each([
  ['all', []],
  ['some', ['0'.repeat(64)]],
])(
  'Ctrl-C while a deployment is made cancels it, if the server has %s of the files',
  async (_, missing) => {
    const ended = await interruptAtCreation((request, response) => {
      if (isCreation(request)) setTimeout(() => send(response, { ...made, uploads: { missing } }, 201), 1_000)
      else send(response, made)
    })
    expect(ended).toMatchObject({ code: 130, stdout: '' })
    expect(asked).toEqual(['POST /api/deployments', 'POST /api/deployments/dpl_1/cancel'])
  },
  60_000,
)

test.each(['POST /api/projects', 'POST /api/deployments'])(
  'Ctrl-C during %s deletes the project that was created for the folder',
  async (step) => {
    const url = await listen((request, response) => {
      const respond = () => {
        if (request.method === 'DELETE') response.writeHead(204).end()
        else send(response, request.url === '/api/projects' ? { name: 'fresh' } : made, 201)
      }
      if (`${request.method} ${request.url}` === step) setTimeout(respond, 1_000)
      else respond()
    })
    const env = { BERTH_URL: url, BERTH_TOKEN: 'brt_test' }
    const running = cli.run(['deploy', folder, '--yes'], { env })
    await expect.poll(() => asked, { timeout: 20_000 }).toContain(step)
    expect(cli.interrupt()).toBe(true)
    expect(await running).toMatchObject({ code: 130, stderr: expect.stringContaining('Deleted project fresh') })
    expect(asked).toContain('DELETE /api/projects/fresh')
    expect(existsSync(join(folder, '.berth'))).toBe(false)
  },
  60_000,
)

test('Ctrl-C while a ref is deployed says how to follow the build', async () => {
  const url = await listen((_, response) => setTimeout(() => send(response, made, 201), 1_000))
  const env = { BERTH_URL: url, BERTH_TOKEN: 'brt_test' }
  const running = cli.run(['deploy', '--ref', 'main', '-p', 'site'], { env })
  await expect.poll(() => asked, { timeout: 20_000 }).toContain('POST /api/deployments')
  expect(cli.interrupt()).toBe(true)
  expect(await running).toMatchObject({ code: 130, stderr: expect.stringContaining('`berth logs -f dpl_1`') })
  expect(asked).toEqual(['POST /api/deployments'])
}, 60_000)

test('Ctrl-C ends a deployment that the server never answers', async () => {
  expect(await interruptAtCreation(() => {})).toMatchObject({ code: 130, stderr: expect.stringMatching(/Interrupted/) })
}, 60_000)

test.each([
  [{ code: 1, detail: {}, errors: 'no' }, 'Error: The server responded with 422.'],
  [{ code: 'a', detail: 'Not so.', errors: [null] }, 'Error: Not so. (a)'],
  [{ code: 'a', detail: 'Not so.', errors: [{ pointer: 1, detail: 2 }, { detail: 'x' }] }, 'Error: Not so. (a)'],
  [{ code: 'a', detail: 'Not so.', errors: [{ pointer: '#/b', detail: 'c' }] }, 'Error: Not so. (a)\n  b: c'],
])(
  'a refusal that says %j is told all the same',
  async (problem, words) => {
    const ended = await deploy((_, response) => send(response, problem, 422))
    expect(ended).toMatchObject({ code: 6, stdout: '' })
    expect(ended.stderr.slice(ended.stderr.indexOf('Error'))).toBe(`${words}\n`)
  },
  20_000,
)

test.each([
  [{}, 'a deployment'],
  [5, 'a JSON object'],
  ['dpl_1', 'a JSON object'],
  [{ ...made, id: '' }, 'a deployment'],
  [{ ...made, id: 7 }, 'a deployment'],
  [{ ...made, uploads: 5 }, 'a deployment'],
  [{ ...made, uploads: { missing: 5 } }, 'a deployment'],
  [{ ...made, uploads: { missing: [5] } }, 'a deployment'],
])(
  'a deployment that was made as %j is no deployment',
  async (body, what) => {
    const ended = await deploy((_, response) => send(response, body, 201))
    expect(ended).toMatchObject({ code: 7, stdout: '' })
    expect(ended.stderr).toMatch(new RegExp(`Error: The server responded with 201, but not with ${what}\\.\\n$`))
    expect(asked).toEqual(['POST /api/deployments'])
  },
  20_000,
)

const logAnswer =
  (write: (response: ServerResponse) => void): Answer =>
  (request, response) => {
    if (isCreation(request)) send(response, { ...made, uploads: { missing: [] } }, 201)
    else if (request.url?.endsWith('/logs')) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      write(response)
    } else if (!request.url?.includes('wait=')) send(response, made)
  }

test.each(['data: {', 'data: {}', 'data: null', 'data: {"text":5}'])(
  'a log of %j ends it',
  async (line) => {
    const ended = await deploy(logAnswer((response) => response.write(`id: 1\n${line}\n\n`)))
    expect(ended).toMatchObject({
      code: 7,
      stderr: expect.stringMatching(/Error: The server sent a malformed log message\.\n$/),
    })
  },
  20_000,
)

test('a state that is none is told, and not waited for', async () => {
  const ended = await deploy((request, response) => {
    if (isCreation(request)) send(response, { ...made, uploads: { missing: [] } }, 201)
    else if (request.url?.endsWith('/logs')) {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end('event: end\ndata: {}\n\n')
    } else send(response, {})
  })
  expect(ended).toMatchObject({ code: 7, stdout: '' })
  expect(ended.stderr).toMatch(/Error: The server responded with 200, but not with a deployment\.\n$/)
}, 20_000)

/** Writes as much as is taken, and counts it. */
function writeWithoutEnd(response: ServerResponse, count: (bytes: number) => void): void {
  const chunk = Buffer.alloc(1 << 20, 'a')
  const write = () => {
    do count(chunk.length)
    while (!response.destroyed && response.write(chunk))
  }
  response.on('drain', write)
  write()
}

test('an answer without end is left', async () => {
  let sent = 0
  const ended = await deploy((_, response) => writeWithoutEnd(response.writeHead(200), (bytes) => (sent += bytes)))
  expect(ended).toMatchObject({ code: 7, stdout: '' })
  expect(ended.stderr).toMatch(/Error: The server responded with more than 256 MiB\.\n$/)
  expect(asked).toHaveLength(1)
  expect(sent).toBeLessThan(300 << 20)
}, 60_000)

test.each([
  ['projects ls', 200],
  ['whoami', 200],
  ['ls', 400],
  ['events -f', 400],
])(
  'so is one to `berth %s` with status %i',
  async (command, status) => {
    let sent = 0
    const url = await listen((_, response) => {
      writeWithoutEnd(response.writeHead(status, { 'content-type': 'application/json' }), (bytes) => (sent += bytes))
    })
    const ended = await cli.run(command.split(' '), { env: { BERTH_URL: url, BERTH_TOKEN: 'brt_test' } })
    expect(ended).toEqual({ code: 7, stdout: '', stderr: 'Error: The server responded with more than 256 MiB.\n' })
    expect(asked).toHaveLength(1)
    expect(sent).toBeLessThan(300 << 20)
  },
  60_000,
)

test('an event without end is left', async () => {
  let sent = 0
  const url = await listen((request, response) => {
    if (request.headers.accept !== 'text/event-stream') return send(response, { events: [], nextCursor: null })
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: ')
    writeWithoutEnd(response, (bytes) => (sent += bytes))
  })
  const ended = await cli.run(['events', '-f'], { env: { BERTH_URL: url, BERTH_TOKEN: 'brt_test' } })
  expect(ended).toEqual({ code: 7, stdout: '', stderr: 'Error: The server sent a message of more than 1 MiB.\n' })
  expect(sent).toBeLessThan(32 << 20)
}, 60_000)

test('a message without end is left', async () => {
  let sent = 0
  const ended = await deploy(logAnswer((response) => writeWithoutEnd(response, (bytes) => (sent += bytes))))
  expect(ended).toMatchObject({ code: 7, stdout: '' })
  expect(ended.stderr).toMatch(/Error: The server sent a log message of more than 1 MiB\.\n$/)
  expect(sent).toBeLessThan(32 << 20)
}, 60_000)

test('messages are read wherever they are cut', async () => {
  const text = [1, 2, 3].map((seq) => `id: ${seq}\ndata: {"text":"line ${seq} é"}\n\n`).join(':\n\n')
  const bytes = Buffer.from(`${text}event: end\ndata: {}\n\n`)
  for (const length of [1, 2, 3, 7, bytes.length]) {
    async function* pieces() {
      for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
    }
    const read: string[] = []
    for await (const { id, event, data } of messagesOf(pieces())) read.push(`${id} ${event} ${data}`)
    const lines = [1, 2, 3].map((seq) => `${seq} message {"text":"line ${seq} é"}`)
    expect(read).toEqual([...lines, 'null end {}'])
  }
})
