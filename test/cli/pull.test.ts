// `berth env pull` against a folder and a server that are hostile: nothing outside of the folder, nobody else reads it.
import { lstat, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type CommandLine, openCommandLine } from '../helpers/command-line.ts'

let cli: CommandLine
let server: Server
let env: Record<string, string>
let folder: string
let key: string

beforeAll(async () => {
  cli = await openCommandLine({ here: true })
  server = createServer((request, response) => {
    const variable = { key, target: 'all', value: '1', readable: true }
    request.resume().on('end', () => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ env: [variable] }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  env = { BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, BERTH_TOKEN: 'brt_test' }
}, 60_000)
afterAll(async () => {
  server.closeAllConnections()
  server.close()
  await cli.remove()
})
beforeEach(async () => {
  folder = await mkdtemp(join(cli.directory, 'site-'))
  key = 'A'
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const pull = (...args: string[]) => cli.run(['env', 'pull', join(folder, '.env.local'), '-p', 'site', ...args], { env })

test('a link that leads nowhere is replaced once that is confirmed, and never followed', async () => {
  const outside = join(cli.directory, 'outside')
  await symlink(outside, join(folder, '.env.local'))
  expect((await pull()).code).toBe(2)
  expect(await pull('--yes')).toMatchObject({ code: 0 })
  expect((await lstat(join(folder, '.env.local'))).isFile()).toBe(true)
  await expect(lstat(outside)).rejects.toThrow('ENOENT')
})

test('the file is readable by its owner alone, whatever its mode was', async () => {
  await writeFile(join(folder, '.env.local'), 'OLD=1', { mode: 0o644 })
  expect(await pull('--yes')).toMatchObject({ code: 0 })
  expect((await lstat(join(folder, '.env.local'))).mode & 0o777).toBe(0o600)
  expect(await readFile(join(folder, '.env.local'), 'utf8')).toBe('A=1\n')
  expect(await readdir(folder)).toEqual(['.env.local'])
})

test.each(['A\nEVIL=1', '', 'A=B', '1A', 'A B', '#A'])('the key %j is refused', async (wrong) => {
  key = wrong
  expect(await pull()).toMatchObject({ code: 7, stdout: '' })
  expect(await readdir(folder)).toEqual([])
})
