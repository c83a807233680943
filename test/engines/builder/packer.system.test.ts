import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, open, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Limits, readPacked } from '../../../src/engines/builder/tree/entries.ts'
import { PACKER, type PackerPlan } from '../../../src/engines/builder/tree/packer.ts'
import { removeTree } from '../../../src/platform/files/remove-tree.ts'
import { readAll, type Seen } from './packed.ts'

let tree: string
beforeEach(async () => {
  tree = await mkdtemp(join(tmpdir(), 'berth-packer-'))
  await chmod(tree, 0o755)
})
afterEach(() => removeTree(tree))

const limits: Limits = { entries: 10_000, bytes: 1 << 30, pathBytes: 1 << 16, depth: 10_000 }
const dist: PackerPlan = { root: '', candidates: [{ path: 'dist', needsIndex: false }], without: ['node_modules'] }

/** The program, as a sandbox starts it; `before` runs in its process first. */
function start(plan: PackerPlan = dist, before = '') {
  const child = spawn(process.execPath, ['-e', before + PACKER], { cwd: tree })
  child.stdin.end(JSON.stringify(plan))
  child.stderr.resume()
  return child
}

async function pack(plan?: PackerPlan, before?: string) {
  const { stdout } = start(plan, before)
  return readAll(stdout, limits)
}

async function write(path: string, content: string | Buffer = '', mode = 0o644): Promise<void> {
  await mkdir(dirname(join(tree, path)), { recursive: true })
  await writeFile(join(tree, path), content, { mode })
}

const byPath = (entries: Seen[]) => entries.sort((a, b) => (a.path < b.path ? -1 : 1))

describe('the packer', () => {
  test('writes folders, files, executables and links as they are', async () => {
    await write('dist/index.html', '<h1>hi</h1>')
    await write('dist/bin/run', '#!/bin/sh\n', 0o755)
    await write('dist/größe ☃.txt', '')
    await mkdir(join(tree, 'dist/empty'))
    await symlink('index.html', join(tree, 'dist/link'))
    await symlink('/etc/passwd', join(tree, 'dist/passwd'))
    const { output, entries } = await pack()
    expect(output).toEqual({ path: 'dist', inside: join(tree, 'dist') })
    expect(byPath(entries)).toEqual([
      { kind: 'directory', path: 'bin' },
      { kind: 'file', path: 'bin/run', executable: true, content: '#!/bin/sh\n' },
      { kind: 'directory', path: 'empty' },
      { kind: 'file', path: 'größe ☃.txt', executable: false, content: '' },
      { kind: 'file', path: 'index.html', executable: false, content: '<h1>hi</h1>' },
      { kind: 'link', path: 'link', target: 'index.html' },
      { kind: 'link', path: 'passwd', target: '/etc/passwd' },
    ])
  })

  test('walks into no link, and leaves names out wherever they are', async () => {
    await write('secret/key', 'secret')
    await write('dist/a/node_modules/x.js', 'x')
    await write('dist/node_modules', 'a file of that name')
    await write('dist/a/kept', '')
    await symlink('../secret', join(tree, 'dist/secret'))
    const { entries } = await pack()
    expect(byPath(entries).map(({ path }) => path)).toEqual(['a', 'a/kept', 'secret'])
  })

  test('writes large and sparse files whole', async () => {
    await write('dist/large', Buffer.alloc(3_000_001, 'x'))
    const sparse = await open(join(tree, 'dist/sparse'), 'w')
    await sparse.truncate(64 << 20)
    await sparse.close()
    const { stdout } = start()
    const sizes: Record<string, number> = {}
    for await (const entry of (await readPacked(stdout, limits)).entries()) {
      if (entry.kind !== 'file') continue
      sizes[entry.path] = 0
      for await (const chunk of entry.content.stream()) sizes[entry.path]! += chunk.length
    }
    expect(sizes).toEqual({ large: 3_000_001, sparse: 64 << 20 })
  })

  test('ends when nobody reads on', async () => {
    await write('dist/large', Buffer.alloc(20 << 20))
    const child = start()
    await once(child.stdout, 'readable')
    child.stdout.destroy()
    const [code] = await once(child, 'exit')
    expect(code).not.toBe(0)
  })
})

describe('what is no file or cannot be read is refused by its name, and holds nobody up', () => {
  test('a FIFO', async () => {
    await write('dist/index.html')
    execFileSync('mkfifo', [join(tree, 'dist/pipe')])
    await expect(pack()).rejects.toMatchObject({
      code: 'output_unsafe',
      message: expect.stringContaining('pipe is neither a file nor a folder'),
    })
  })

  test('a socket', async () => {
    await mkdir(join(tree, 'dist'))
    const server = createServer().listen(join(tree, 'dist/socket'))
    await once(server, 'listening')
    await expect(pack()).rejects.toMatchObject({ code: 'output_unsafe', message: expect.stringMatching(/^socket is/) })
    server.close()
  })

  // Root reads everything, so the program gives that up first.
  const asNobody = 'if (process.getuid() === 0) process.setuid(65534);'

  test('a file closed to the packer', async () => {
    await write('dist/closed', 'secret', 0o000)
    await expect(pack(dist, asNobody)).rejects.toMatchObject({
      message: expect.stringMatching(/^closed cannot be read/),
    })
  })

  test('a folder closed to the packer', async () => {
    await mkdir(join(tree, 'dist/closed'), { recursive: true })
    await chmod(join(tree, 'dist/closed'), 0o000)
    await expect(pack(dist, asNobody)).rejects.toMatchObject({
      code: 'output_unsafe',
      message: expect.stringMatching(/^closed\/ cannot be read/),
    })
  })

  test.each([
    ['not UTF-8', Buffer.from([0x61, 0xff]), 'a\\xff has a name that is not UTF-8'],
    ['with a newline', Buffer.from('a\nb'), 'a\\x0ab has a control character in its name'],
  ])('a name %s', async (_what, name, message) => {
    await mkdir(join(tree, 'dist'))
    await writeFile(Buffer.concat([Buffer.from(`${tree}/dist/`), name]), '')
    await expect(pack()).rejects.toMatchObject({ code: 'output_unsafe', message: expect.stringContaining(message) })
  })

  test('a tree deeper than any path is long', async () => {
    const make = 'for (let i = 0; i < 3000; i++) { fs.mkdirSync("d"); process.chdir("d") }'
    await mkdir(join(tree, 'dist'))
    execFileSync(process.execPath, ['-e', make], { cwd: join(tree, 'dist') })
    await expect(pack()).rejects.toMatchObject({ code: 'output_unsafe' })
  })
})

describe('the output directory', () => {
  const plan = (...candidates: PackerPlan['candidates']): PackerPlan => ({ ...dist, candidates })

  test('is the first that is there, and has an index.html where it needs one', async () => {
    await write('public/robots.txt')
    await write('out/page.html')
    const wanted = [
      { path: 'dist', needsIndex: false },
      { path: 'public', needsIndex: true },
      { path: 'out', needsIndex: false },
    ]
    expect((await pack(plan(...wanted))).output).toMatchObject({ path: 'out' })
    await write('public/index.html')
    expect((await pack(plan(...wanted))).output).toMatchObject({ path: 'public' })
  })

  test('is looked for below the root directory', async () => {
    await write('dist/wrong')
    await write('packages/site/dist/right')
    const { entries } = await pack({ ...dist, root: 'packages/site' })
    expect(entries.map(({ path }) => path)).toEqual(['right'])
  })

  test('may be a link within the tree, and is refused where it leads out', async () => {
    await write('real/page.html')
    await symlink('real', join(tree, 'dist'))
    expect((await pack()).output).toEqual({ path: 'dist', inside: join(tree, 'real') })
    await symlink('/etc', join(tree, 'out'))
    await symlink(`${tree}-beside`, join(tree, 'beside'))
    await expect(pack(plan({ path: 'out', needsIndex: false }))).rejects.toMatchObject({
      code: 'output_unsafe',
      message: expect.stringContaining('out leads out of the project'),
    })
    await mkdir(`${tree}-beside`)
    try {
      await expect(pack(plan({ path: 'beside', needsIndex: false }))).rejects.toMatchObject({ code: 'output_unsafe' })
    } finally {
      await removeTree(`${tree}-beside`)
    }
  })

  test('that is a file, a FIFO, a loop or not there is missing, and the names at the root are told', async () => {
    await write('dist')
    await write('package.json')
    execFileSync('mkfifo', [join(tree, 'pipe')])
    await symlink('loop', join(tree, 'loop'))
    const wanted = ['dist', 'pipe', 'loop', 'nowhere'].map((path) => ({ path, needsIndex: false }))
    const { output, entries } = await pack(plan(...wanted))
    expect(output).toEqual({ missing: ['dist', 'loop', 'package.json', 'pipe'] })
    expect(entries).toEqual([])
    expect((await pack({ ...dist, root: 'nowhere' })).output).toEqual({ missing: [] })
  })

  test('that is missing among very many names tells of some', async () => {
    await Promise.all(Array.from({ length: 400 }, (_, at) => write(`${String(at).padStart(3, '0')}${'é'.repeat(100)}`)))
    const { output } = await pack()
    const missing = 'missing' in output ? output.missing : []
    expect(missing.length).toBeGreaterThan(10)
    expect(missing.length).toBeLessThanOrEqual(200)
  })
})
