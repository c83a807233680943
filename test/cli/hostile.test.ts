// The command line against a server that is slow, broken or hostile: a clear sentence, an exit code, and an end.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
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

test('Ctrl-C ends a deployment that the server never answers', async () => {
  const startedMs = Date.now()
  expect(await interruptAtCreation(() => {})).toMatchObject({ code: 130, stderr: expect.stringMatching(/Interrupted/) })
  expect(Date.now() - startedMs).toBeLessThan(20_000)
}, 60_000)
