// Real bare git repositories, created by git.
import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
// Ignores this machine's git configuration, such as a filter of a missing git-lfs.
const plainGit = { ...process.env, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' }

/** A symbolic link instead of a file. */
export type Link = { link: string }

/**
 * Creates `<root>/<owner>/<repository>.git` with one commit on `main`; returns its full hash. `prepare` runs before the
 * commit, for changes that `files` can't express.
 */
export async function createRepository(
  root: string,
  repo: string,
  files?: Record<string, string | Link>,
  options: Options = {},
): Promise<string> {
  const bare = join(root, `${repo}.git`)
  if (files) return create(bare, files, options)
  // Most tests don't care about the contents, and copying takes a tenth of the time.
  plain ??= createPlain()
  const { path, hash } = await plain
  await cp(path, bare, { recursive: true })
  return hash
}

type Options = {
  /** Submodules: path → commit of another repository. */
  submodules?: Record<string, string>
  prepare?: (tree: string) => Promise<unknown>
}

let plain: Promise<{ path: string; hash: string }> | undefined

async function createPlain() {
  const path = await mkdtemp(join(tmpdir(), 'berth-repository-'))
  process.once('exit', () => rmSync(path, { recursive: true, force: true }))
  return { path, hash: await create(path, { 'index.html': '<h1>hello</h1>\n' }) }
}

async function create(
  bare: string,
  files: Record<string, string | Link>,
  { submodules = {}, prepare }: Options = {},
): Promise<string> {
  const tree = await mkdtemp(join(tmpdir(), 'berth-tree-'))
  // One shell for several git commands: forking the large test process costs more than running git.
  const shell = (script: string) => run('sh', ['-ec', script], { cwd: tree, env: { ...plainGit, bare } })
  try {
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(tree, path)), { recursive: true })
      await (typeof content === 'string'
        ? writeFile(join(tree, path), content)
        : symlink(content.link, join(tree, path)))
    }
    await mkdir(dirname(bare), { recursive: true })
    const init = 'git init -q -b main --template='
    if (prepare) {
      await shell(init)
      await prepare(tree)
    }
    const links = Object.entries(submodules).map(
      ([path, commit]) => `git update-index --add --cacheinfo '160000,${commit},${path}'`,
    )
    const { stdout } = await shell(
      [
        ...(prepare ? [] : [init]),
        'git add -A',
        ...links,
        'git -c user.name=t -c user.email=t@example.com commit -qm first',
        'git clone -q --bare --template= . "$bare"',
        'git rev-parse HEAD',
      ].join('\n'),
    )
    return stdout.trim()
  } finally {
    await rm(tree, { recursive: true, force: true })
  }
}

/** Adds a commit to a branch, which starts at `main` if it doesn't exist. */
export async function commitTo(
  root: string,
  repo: string,
  branch: string,
  files: Record<string, string>,
): Promise<void> {
  const tree = await mkdtemp(join(tmpdir(), 'berth-tree-'))
  const shell = (script: string) => run('sh', ['-ec', script], { cwd: tree, env: { ...plainGit, bare, branch } })
  const bare = join(root, `${repo}.git`)
  try {
    await shell('git clone -q "$bare" .\ngit checkout -q "$branch" 2> /dev/null || git checkout -q -b "$branch"')
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(tree, path)), { recursive: true })
      await writeFile(join(tree, path), text)
    }
    await shell(
      'git add -A\ngit -c user.name=t -c user.email=t@example.com commit -qm next\ngit push -q origin "$branch"',
    )
  } finally {
    await rm(tree, { recursive: true, force: true })
  }
}
