// The same work by hand: shell steps in a separate directory, with the npm settings of builds.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { vitePackage } from './sites.ts'

const run = promisify(execFile)

export type Bare = {
  /** Milliseconds of `git clone` and a copy. */
  copy(url: string): Promise<number>
  /** Milliseconds of `git clone`, `npm install` and `npm run build`, starting with an empty npm cache. */
  build(url: string): Promise<number>
  /** A lockfile for the Vite project, created by npm from its registry. */
  lockfile(): Promise<string>
}

export async function openBare(root: string): Promise<Bare> {
  await mkdir(root, { recursive: true })
  const { stdout } = await run('npm', ['config', 'get', 'registry'])
  // Removes the settings of the npm that runs this benchmark.
  const outside = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm_|node_env$)/i.test(name)))
  const environmentOf = (directory: string) => ({
    ...outside,
    // Builds use the Node that runs the platform.
    PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
    HOME: directory,
    // Like builds, a separate one; tools cache compiled code there between runs.
    TMPDIR: join(directory, 'tmp'),
    CI: 'true',
    npm_config_registry: stdout.trim(),
    npm_config_cache: join(directory, 'cache'),
    npm_config_update_notifier: 'false',
    npm_config_fund: 'false',
    npm_config_audit: 'false',
  })

  /** Deleted with the root at the end: after deleting files, ext4 scans their inodes for minutes when creating new ones. */
  async function inDirectory<T>(work: (directory: string) => Promise<T>): Promise<T> {
    const directory = await mkdtemp(join(root, 'bare-'))
    await mkdir(join(directory, 'tmp'))
    return work(directory)
  }

  const timed = (script: string, url: string) =>
    inDirectory(async (directory) => {
      const env = { ...environmentOf(directory), URL: url }
      const startedMs = performance.now()
      await run('/bin/sh', ['-ec', script], { cwd: directory, env })
      return performance.now() - startedMs
    })

  return {
    copy: (url) => timed('git clone -q --depth 1 "$URL" site; cp -r site out', url),
    build: (url) => timed('git clone -q --depth 1 "$URL" site; cd site; npm install; npm run build', url),
    lockfile: () =>
      inDirectory(async (directory) => {
        await writeFile(join(directory, 'package.json'), vitePackage)
        const options = { cwd: directory, env: environmentOf(directory), timeout: 60_000 }
        await run('npm', ['install', '--package-lock-only'], options)
        return readFile(join(directory, 'package-lock.json'), 'utf8')
      }),
  }
}
