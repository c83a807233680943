// The command line against responses that are no responses of the API: one sentence, and exit code 7.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { collect } from '../../cli/src/kit/collect.ts'
import { type CommandLine, openCommandLine } from '../helpers/command-line.ts'

let cli: CommandLine
let server: Server
let url: string
let body: string

beforeAll(async () => {
  cli = await openCommandLine({ here: true })
  server = createServer((request, response) => {
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}, 60_000)
afterAll(async () => {
  server.closeAllConnections()
  server.close()
  await cli.remove()
})

const commands = [
  ...['projects ls', 'ls', 'inspect dpl_1', 'logs dpl_1', 'logs -p x', 'whoami', 'promote dpl_1', 'rollback -p x'],
  ...['env ls -p x', 'env pull -p x', 'env set A b -p x', 'settings -p x', 'settings set hsts=true -p x', 'open dpl_1'],
  ...['tokens ls', 'tokens create a', 'events', 'events -f', 'domains ls', 'domains add a.test -p x', 'hooks ls -p x'],
  ...['domains verify a.test', 'dns ls a.test', 'dns dnssec a.test', 'dns set a.test www A 192.0.2.1', 'crons ls -p x'],
  ...['tickets ls', 'tickets show tkt_1', 'hooks add a -p x', 'projects rename a b', 'redeploy dpl_1', 'cancel dpl_1'],
]

async function expectMalformed(command: string) {
  const ended = await cli.run(command.split(' '), { env: { BERTH_URL: url, BERTH_TOKEN: 'brt_test' } })
  expect(ended, command).toMatchObject({ code: 7, stdout: '' })
  expect(ended.stderr, command).toMatch(/^Error: The server (sent|responded)[^\n]*\.\n$/)
}

test.each(['null', '[]', '"x"', '5', '', '<html>'])('a response of %j', async (text) => {
  body = text
  for (const command of commands) await expectMalformed(command)
})

test.each([
  ['projects ls', { projects: [null] }],
  ['projects ls', { projects: 5 }],
  ['ls --all', { deployments: [{ id: 'dpl_1', createdAt: 5 }] }],
  ['logs -p x', { deployments: 5 }],
  ['inspect dpl_1', { id: 'dpl_1', steps: 5 }],
  ['whoami', { id: 'tok_1', scopes: 5 }],
  ['settings -p x', { settings: null }],
  ['settings set hsts=true -p x', { changes: [{ field: 5 }] }],
  ['env ls -p x', { env: 5 }],
  ['env set A b -p x', { values: 5 }],
  ['tokens ls', { tokens: [{ scopes: 5 }] }],
  ['domains add a.test -p x', {}],
  ['domains verify a.test', {}],
  ['dns set a.test www A 192.0.2.1', {}],
  ['crons ls -p x', {}],
])('a response to `berth %s` of %j', async (command, response) => {
  body = JSON.stringify(response)
  const ended = await cli.run(command.split(' '), { env: { BERTH_URL: url, BERTH_TOKEN: 'brt_test' } })
  expect(ended).toMatchObject({ code: 7, stdout: '' })
  expect(ended.stderr).toMatch(/Error: The server (sent|responded)[^\n]*\.\n$/)
})

test('a list without an end', async () => {
  let sent = 0
  async function* endless() {
    for (; ; sent++) yield sent
  }
  await expect(collect(endless())).rejects.toThrow('The server sent a list of more than 1000000 items.')
  expect(sent).toBe(1_000_000)
})
