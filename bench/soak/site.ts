// The site of the soak: a repository with pages, scripts and pictures of common sizes, and commits to it.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const author = ['-c', 'user.name=soak', '-c', 'user.email=soak@berth.test']

/** Returns the paths to visit. */
export async function makeSite(bare: string): Promise<string[]> {
  const files: Record<string, string | Buffer> = { 'index.html': '<h1>Soak</h1>' }
  for (let n = 0; n < 100; n++) {
    files[`page-${n}.html`] = `<p>${randomBytes(n * 40 + 20).toString('hex')}</p>`
    files[`assets/app-${n}.js`] = `export const text = '${randomBytes(n * 300).toString('hex')}'`
  }
  for (let n = 0; n < 20; n++) files[`img/photo-${n}.jpg`] = randomBytes(20_000 + n * 40_000)
  await mkdir(dirname(bare), { recursive: true })
  await run('git', ['init', '-q', '--bare', '-b', 'main', bare])
  await commit(bare, files)
  return Object.keys(files).map((path) => `/${path.replace(/(index)?\.html$/, '')}`)
}

export async function commit(bare: string, files: Record<string, string | Buffer>): Promise<void> {
  const tree = await mkdtemp(join(tmpdir(), 'berth-soak-tree-'))
  const git = (...args: string[]) => run('git', ['-C', tree, ...author, ...args])
  try {
    await git('clone', '-q', bare, '.')
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(tree, path)), { recursive: true })
      await writeFile(join(tree, path), content)
    }
    await git('add', '-A')
    await git('commit', '-qm', 'Change')
    await git('push', '-q', 'origin', 'HEAD:main')
  } finally {
    await rm(tree, { recursive: true, force: true })
  }
}
