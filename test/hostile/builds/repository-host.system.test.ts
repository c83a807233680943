import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { BuildLog } from '../../../src/engines/builder/explain/log.ts'
import { openSource } from '../../../src/engines/builder/source/source.ts'
import { createRepositories } from '../../../src/platform/git/repositories.ts'
import { processesWith } from '../../sandbox/sandboxes.ts'

let root: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-bomb-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))

const silent: BuildLog = {
  step: () => {},
  steps: () => [],
  system: () => {},
  warn: () => {},
  warnings: () => [],
  output: () => {},
  endCommand: () => {},
  close: async () => {},
}
const searchPath = process.env.PATH!

/** A commit whose tree has `width` entries of one kind at each of its levels: a few objects, and any number of paths. */
function bomb(name: string, levels: number[], leaf: (index: number) => string): { url: string; commit: string } {
  const url = join(root, `${name}.git`)
  const git = (args: string[], input = '') =>
    execFileSync('git', ['-C', url, ...args], { input, encoding: 'utf8', maxBuffer: 1 << 26 }).trim()
  execFileSync('git', ['init', '-q', '--bare', url])
  let tree = ''
  for (const [level, width] of levels.entries()) {
    const entries = Array.from({ length: width }, (_, index) =>
      level === 0 ? leaf(index) : `040000 tree ${tree}\td${index}`,
    )
    tree = git(['mktree', '--missing'], `${entries.join('\n')}\n`)
  }
  const identity = ['-c', 'user.name=t', '-c', 'user.email=t@example.com']
  const commit = git([...identity, 'commit-tree', '-m', 'bomb', tree])
  git(['update-ref', 'refs/heads/main', commit])
  return { url, commit }
}

async function open({ url, commit }: { url: string; commit: string }): Promise<unknown> {
  const directory = await mkdtemp(join(root, 'fetched-'))
  const options = { url, commit, directory, searchPath, urlTemplate: 'https://git.example/{repo}' }
  const source = openSource({ ...options, signal: AbortSignal.timeout(60_000) }, silent)
  return source.then(
    (opened) => opened.close(),
    (error) => ({ code: error.code, message: error.message }),
  )
}

describe('a repository of a few objects that stands for', () => {
  test('a billion submodules is refused while it is listed', async () => {
    const made = bomb('gitlinks', [1000, 1000, 1000], (index) => `160000 commit ${'1'.repeat(40)}\tm${index}`)
    expect(await open(made)).toMatchObject({ code: 'clone_failed', message: expect.stringContaining('50 submodules') })
  }, 90_000)

  test('a billion files is refused while it is listed', async () => {
    const empty = 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'
    const made = bomb('files', [1000, 1000, 1000], (index) => `100644 blob ${empty}\tf${index}`)
    execFileSync('git', ['-C', made.url, 'hash-object', '-w', '--stdin'], { input: '' })
    expect(await open(made)).toMatchObject({ code: 'clone_failed', message: expect.stringContaining('200000 files') })
  }, 90_000)
})

describe('a repository host that falls silent', () => {
  test('leaves no process of git behind when the time is over', async () => {
    const sockets = new Set<Socket>()
    const server = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-advertisement' })
      response.write('001e# service=git-upload-pack\n')
    })
    server.on('connection', (socket) => sockets.add(socket))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const repositories = createRepositories(`http://127.0.0.1:${port}/{repo}.git`, null, searchPath)
    expect(await repositories.resolve('acme/silent', 'main', 1_000)).toBe('unreachable')
    await expect.poll(() => processesWith(`127.0.0.1:${port}/acme/silent`)).toEqual([])
    for (const socket of sockets) socket.destroy()
    server.close()
  })
})
