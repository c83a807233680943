// The command line against servers that are away, elsewhere, older, or know more than this one.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CommandLine, openCommandLine } from '../helpers/command-line.ts'

let cli: CommandLine

const listen = (one: Server) =>
  new Promise<number>((resolve) => {
    one.listen(0, '127.0.0.1', () => resolve((one.address() as AddressInfo).port))
  })

beforeAll(async () => {
  cli = await openCommandLine()
}, 60_000)
afterAll(() => cli.remove())

test('a server that is down, another one, or an older one is told in a sentence', async () => {
  const away = await cli.run(['ls'], { env: { BERTH_URL: 'http://localhost:1', BERTH_TOKEN: 'brt_test' } })
  expect(away).toMatchObject({
    code: 7,
    stderr: expect.stringMatching(/^Error: The server cannot be reached: \S.*\n$/),
  })
  const strange = createServer((request, response) => {
    const { url: path = '' } = request
    request.resume()
    if (path.startsWith('/api/projects')) response.writeHead(302, { location: 'https://elsewhere.test/' }).end()
    else if (path.startsWith('/api/events')) response.end('<html>')
    else
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"code":"route_not_found","detail":"No."}')
  })
  const other = { BERTH_URL: `http://127.0.0.1:${await listen(strange)}`, BERTH_TOKEN: 'brt_test' }
  const older = await cli.run(['rollback', 'dpl_1'], { env: other })
  expect(older).toMatchObject({ code: 5, stderr: expect.stringContaining('may be older') })
  const moved = await cli.run(['api', '/projects'], { env: other })
  expect(moved).toMatchObject({ code: 7, stderr: expect.stringContaining('https://elsewhere.test/') })
  strange.closeAllConnections()
  strange.close()
}, 60_000)

test('deploy hooks are made, listed page by page and deleted, and crons are listed', async () => {
  const calls: string[] = []
  const hook = { id: 'dhk_1', name: 'cms', ref: null, createdAt: '2026-11-17T04:00:00Z', lastUsedAt: null }
  const other = createServer((request, response) => {
    calls.push(`${request.method} ${request.url}`)
    request.resume()
    const send = (body: unknown, status = 200) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (request.method === 'POST') send({ ...hook, url: 'https://berth.test/hooks/deploy/brd_x' }, 201)
    else if (request.method === 'DELETE') response.writeHead(204).end()
    else if (request.url!.includes('/crons')) {
      const lastRun = { outcome: 'ok', status: 200, startedAt: '2026-11-17T03:00:00Z' }
      send({ crons: [{ id: 'crn_1', path: '/x', schedule: '0 3 * * *', nextRunAt: '2026-11-18T03:00:00Z', lastRun }] })
    } else send({ deployHooks: [hook], nextCursor: request.url!.includes('cursor=') ? null : 'next' })
  })
  const there = { BERTH_URL: `http://127.0.0.1:${await listen(other)}`, BERTH_TOKEN: 'brt_test', BERTH_PROJECT: 'site' }
  const run = (...args: string[]) => cli.run(args, { env: there })
  expect(await run('hooks', 'add', 'cms')).toMatchObject({ code: 0, stdout: 'https://berth.test/hooks/deploy/brd_x\n' })
  expect(JSON.parse((await run('hooks', 'ls', '--json')).stdout)).toHaveLength(2)
  expect((await run('hooks', 'rm', 'dhk_1')).code).toBe(2)
  expect((await run('hooks', 'rm', 'dhk_1', '--yes')).code).toBe(0)
  expect((await run('crons', 'ls')).stdout).toMatch(
    /crn_1 +0 3 \* \* \* +\/x +2026-11-18 03:00 +ok 200, 2026-11-17 03:00/,
  )
  expect(calls).toEqual([
    'POST /api/projects/site/deploy-hooks',
    'GET /api/projects/site/deploy-hooks?limit=100',
    'GET /api/projects/site/deploy-hooks?limit=100&cursor=next',
    'DELETE /api/projects/site/deploy-hooks/dhk_1',
    'GET /api/projects/site/crons',
  ])
  other.closeAllConnections()
  other.close()
}, 60_000)
