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
    stderr: expect.stringMatching(/^Error: We couldn't reach the server: \S.*\n$/),
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
