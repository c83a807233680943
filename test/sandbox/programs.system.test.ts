import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { createGzip } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { tarEnd, tarHeader, tarPadding } from '../../src/platform/files/tar.ts'
import { openPrograms, type Programs } from '../../src/sandbox/programs/programs.ts'
import { sharedSandbox } from '../helpers/sandbox.ts'

vi.setConfig({ testTimeout: 60_000 })

// A package registry of one package, `greeter`, whose version 6.6.6 is not what its checksum says.
const manifestOf = (version: string) =>
  JSON.stringify({ name: 'greeter', version, bin: { greet: 'greet.sh' }, scripts: { postinstall: 'touch /tmp/no' } })

async function tarball(version: string): Promise<Buffer> {
  const gzip = createGzip()
  const files = { 'package.json': manifestOf(version), 'greet.sh': `#!/bin/sh\necho "hello ${version}"\n` }
  for (const [name, text] of Object.entries(files)) {
    const content = Buffer.from(text)
    gzip.write(tarHeader({ kind: 'file', path: `package/${name}`, mode: 0o755, size: content.length }))
    gzip.write(content)
    gzip.write(tarPadding(content.length))
  }
  gzip.end(tarEnd)
  return buffer(gzip)
}

let registry: Server
let address: string
let served: string[] = []
beforeAll(async () => {
  const versions = ['1.0.0', '2.0.0', '6.6.6']
  const balls = new Map(await Promise.all(versions.map(async (one) => [one, await tarball(one)] as const)))
  registry = createServer((request, answer) => {
    served.push(request.url!)
    const [, version] = /^\/greeter\/-\/(.*)\.tgz$/.exec(request.url!) ?? []
    if (version) return void answer.end(balls.get(version === '6.6.6' ? '1.0.0' : version))
    if (request.url !== '/greeter') return void answer.writeHead(404).end('{}')
    const all = versions.map((version) => {
      const integrity = `sha512-${createHash('sha512').update(balls.get(version)!).digest('base64')}`
      const dist = { tarball: `${address}/greeter/-/${version}.tgz`, integrity }
      return [version, { ...JSON.parse(manifestOf(version)), dist }]
    })
    answer.setHeader('content-type', 'application/json')
    answer.end(JSON.stringify({ name: 'greeter', 'dist-tags': { latest: '2.0.0' }, versions: Object.fromEntries(all) }))
  })
  await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve))
  address = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`
})
afterAll(() => registry.close())

let root: string
let directory: string
const open = (more: { maxMb?: number; keepMs?: number } = {}): Programs =>
  openPrograms({ directory, maxMb: 100, keepMs: 60_000, registry: address, ...more })
const greeter = (version: string) => ({ package: 'greeter', version })
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-programs-'))
  directory = join(root, 'programs')
  served = []
})
afterEach(() => rm(root, { recursive: true, force: true }))

test('a program is fetched once, however many want it at the same time, and none of its scripts is run', async () => {
  const [one, two] = [open(), open()]
  const found = await Promise.all([one, one, two].map((programs) => programs.open(greeter('1.0.0'))))
  expect(new Set(found.map(({ host }) => host)).size).toBe(1)
  // Two processes that begin together fetch it twice, and one of both stays.
  expect(await readdir(directory)).toEqual(['greeter@1.0.0'])
  const before = served.length
  await open().open(greeter('1.0.0'))
  expect(served.length).toBe(before)
  await expect(stat('/tmp/no')).rejects.toThrow()
})

test('a sandbox finds it before the programs of the machine, and cannot write to it', async () => {
  const sandbox = await sharedSandbox()
  const program = await open().open({ ...greeter('2.0.0'), bin: { ls: 'greet.sh' } })
  const workTree = join(root, 'tree')
  await sandbox.makeDirectory(workTree)
  let output = ''
  const { exited } = sandbox.run({
    argv: ['/bin/sh', '-c', `ls; echo x > ${program.inside}/bin/more 2>/dev/null && echo written; true`],
    workTree,
    environment: {},
    programs: [program],
    limits: { memoryMb: 256, processes: 32, timeoutMs: 30_000 },
    onOutput: (_stream, chunk) => {
      output += chunk
    },
  })
  expect(await exited).toMatchObject({ code: 0 })
  expect(output).toContain('hello 2.0.0')
  if (sandbox.driver === 'bubblewrap') expect(output).not.toContain('written')
  expect(await readFile(join(program.host, 'bin/ls'), 'utf8')).toContain('hello')
})

test('what is not what its checksum says, or does not exist, is refused, and nothing of it stays', async () => {
  await expect(open().open(greeter('6.6.6'))).rejects.toThrow('greeter 6.6.6 could not be fetched')
  await expect(open().open(greeter('3.0.0'))).rejects.toThrow('the registry has no such version')
  expect(await readdir(directory)).toEqual([])
})

test.each(['latest', '^1.0.0', '', '../x', '1.0.0 2.0.0', 'file:/etc', 'http://127.0.0.1/x.tgz'])(
  'the version %j is none, and nothing is asked',
  async (version) => {
    await expect(open().open(greeter(version))).rejects.toThrow('no version of this name')
    expect(served).toEqual([])
  },
)

test('room is made by removing what was not used for the longest time, but not what is in use or pinned', async () => {
  const old = new Date(Date.now() - 3_600_000)
  const place = async (name: string, usedAt: Date, pinned = false) => {
    await mkdir(join(directory, name), { recursive: true })
    await writeFile(join(directory, name, 'content'), Buffer.alloc(600 << 10))
    if (pinned) await writeFile(join(directory, name, '.pinned'), '')
    await utimes(join(directory, name), usedAt, usedAt)
  }
  await place('a@1.0.0', new Date(old.getTime() - 1000))
  await place('b@1.0.0', old)
  await place('pinned@1.0.0', new Date(0), true)
  await place('.new-dead', old)
  await open({ maxMb: 1 }).open(greeter('1.0.0'))
  expect((await readdir(directory)).sort()).toEqual(['b@1.0.0', 'greeter@1.0.0', 'pinned@1.0.0'])

  await place('c@1.0.0', new Date())
  await place('d@1.0.0', new Date())
  await expect(open({ maxMb: 1 }).open(greeter('2.0.0'))).rejects.toThrow('There is no room for greeter 2.0.0')
  await open({ maxMb: 1 }).open({ ...greeter('2.0.0'), pinned: true })
})
