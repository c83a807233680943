// `berth env`: variables are readable unless they are secret, and secrets are never written to a file.
import { execFileSync } from 'node:child_process'
import { lstat, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../helpers/api.ts'
import { type CommandLine, openCommandLine } from '../helpers/command-line.ts'

let api: TestApi
let cli: CommandLine

beforeAll(async () => {
  cli = await openCommandLine({ here: true })
  api = await sharedApi()
  const url = await api.listen()
  await api.newProject('site')
  await cli.run(['login', '--url', url, '--token', api.token])
}, 120_000)
afterAll(async () => {
  await api.stop()
  await cli.remove()
})

const run = (...args: string[]) => cli.run(args)
const json = (...args: string[]) => cli.json(args)

test('variables are readable unless they are secret, and stay what they are', async () => {
  const secret = await cli.run(['env', 'set', 'KEY', '--secret', '-p', 'site'], { input: 's3cret\n' })
  expect(secret).toMatchObject({ code: 0, stderr: expect.not.stringContaining('s3cret') })
  expect(await json('env', 'set', 'PAGE', 'a b', '-p', 'site')).toMatchObject({ readable: true, value: 'a b' })
  // A new value for another target discloses nothing either.
  const rotated = await json('env', 'set', 'KEY', 'other', '--target', 'preview', '-p', 'site')
  expect(rotated).toMatchObject({ readable: false, value: null })
  expect(await json('env', 'set', 'OPEN', 'x', '--secret', '-p', 'site')).toMatchObject({ readable: false })
  const open = await json('env', 'set', 'OPEN', 'x', '--readable', '-p', 'site')
  expect(open).toMatchObject({ readable: true, value: 'x' })
  expect((await run('env', 'set', 'A', 'x', '--readable', '--secret', '-p', 'site')).code).toBe(2)
  expect((await run('env', 'set', 'A', 'x', '-p', 'none')).code).toBe(5)
  const keys = (await json('env', 'ls', '-p', 'site')).map(({ key }: { key: string }) => key)
  expect(keys).toEqual(['KEY', 'KEY', 'OPEN', 'PAGE'])
  const file = join(cli.directory, '.env.test')
  const pulled = await run('env', 'pull', file, '-p', 'site')
  expect(pulled.stderr).toContain('Wrote 2 variables')
  expect(pulled.stderr).toContain('Left out 1 secret value: KEY')
  const names = '# Secret, values not included (1):\n# KEY=\n'
  expect(await readFile(file, 'utf8')).toBe(`OPEN=x\nPAGE="a b"\n${names}`)
  expect((await run('env', 'pull', file, '-p', 'site')).code).toBe(2)
  const found = await json('env', 'pull', file, '-p', 'site', '--yes')
  expect(found.map(({ key, value }: { key: string; value: string | null }) => [key, value])).toEqual([
    ['KEY', null],
    ['OPEN', 'x'],
    ['PAGE', 'a b'],
  ])
  expect((await run('env', 'rm', 'KEY', '-p', 'site', '--yes')).code).toBe(0)
  await run('env', 'pull', file, '-p', 'site', '--yes')
  expect(await readFile(file, 'utf8')).toBe('OPEN=x\nPAGE="a b"\n')
}, 120_000)

test('pulling replaces files and links to them, and never a pipe, a device or a folder', async () => {
  const pipe = join(cli.directory, 'pipe')
  execFileSync('mkfifo', [pipe])
  for (const path of [pipe, '/proc/self/fd/1', cli.directory]) {
    const pulled = await run('env', 'pull', path, '-p', 'site', '--yes')
    expect(pulled).toMatchObject({ code: 2, stderr: expect.stringContaining(`${path} is not a regular file.`) })
  }
  expect((await lstat(pipe)).isFIFO()).toBe(true)
  const [target, link] = [join(cli.directory, 'target'), join(cli.directory, 'link')]
  await writeFile(target, 'mine')
  await symlink(target, link)
  expect((await run('env', 'pull', link, '-p', 'site', '--yes')).code).toBe(0)
  expect((await lstat(link)).isFile()).toBe(true)
  expect(await readFile(target, 'utf8')).toBe('mine')
})
