// The first start: creates the data directory, a key for secrets, a demo account and a deployable project.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Config } from '../../config.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { createAccount } from '../../services/accounts/index.ts'
import { createLink, hasNoMember, setupUrl } from '../../services/people/index.ts'
import { createProject } from '../../services/projects/index.ts'

const run = promisify(execFile)

/** Berth's own part of the data directory; PostgreSQL's part belongs to its own user. */
const DIRECTORIES = ['artifacts', 'builds', 'ca', 'cache', 'repos', 'snapshots']
const SECRETS = ['secrets-key', 'test-key']
const demoName = 'demo'

/**
 * Others may traverse it, because under root the embedded database runs as another user. All entries are closed to
 * them, because the user of a build that escaped its sandbox is one of them. Modes of an older installation are
 * corrected. Other names stay untouched, because the operator may have chosen a directory with other files.
 */
export async function createDataDirectory(path: string): Promise<void> {
  if (!existsSync(path)) {
    await mkdir(path, { recursive: true })
    await chmod(path, 0o711)
  }
  for (const name of DIRECTORIES) await mkdir(join(path, name), { recursive: true, mode: 0o700 })
  for (const name of [...DIRECTORIES, ...SECRETS]) await close(join(path, name))
}

/** Removes all permissions of group and others, if we may. */
async function close(path: string): Promise<void> {
  const stats = await stat(path).catch(() => undefined)
  if (stats === undefined || (stats.mode & 0o077) === 0) return
  const uid = process.getuid?.()
  if (uid === 0 || uid === stats.uid) await chmod(path, stats.mode & 0o700)
}

export async function readSecretsKey(config: Config): Promise<Buffer> {
  if (config.secretsKey) return config.secretsKey
  const path = join(config.dataDir, 'secrets-key')
  if (!existsSync(path)) await writePrivately(path, `${randomBytes(32).toString('base64')}\n`)
  return Buffer.from((await readFile(path, 'utf8')).trim(), 'base64')
}

// Written to a temporary file and renamed, so that a crash leaves the whole file or none.
export async function writePrivately(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 })
  await rename(`${path}.new`, path)
}

/** Creates the demo account on an empty platform and returns its test key; null if there are accounts already. */
export async function createDemo(
  db: Database,
  urls: Urls,
  config: Pick<Config, 'dataDir' | 'region'>,
): Promise<string | null> {
  if ((await db.account.count()) > 0) return null
  await createDemoRepository(join(config.dataDir, 'repos'))
  // In one transaction: if this start dies here, the next one repeats it.
  const token = await db.$transaction(async (db) => {
    const { account, token } = await createAccount(db, demoName)
    const actor = { accountId: account.id, tokenId: 'system', scopes: ['*'] as const, projectIds: null }
    const input = { name: 'hello', framework: 'static', repo: 'demo/hello' } as const
    await createProject(db, urls, actor, { region: config.region, input })
    return token
  })
  await writePrivately(join(config.dataDir, 'test-key'), `${token}\n`)
  return token
}

/** A link for the first owner of the demo account, a new one on each start; null once the account has a member. */
export async function linkToDemo(db: Database, baseUrl: string): Promise<string | null> {
  const account = await db.account.findUnique({ where: { name: demoName } })
  if (!account || !(await hasNoMember(db, account.id))) return null
  return setupUrl(baseUrl, await createLink(db, { accountId: account.id }))
}

const demoFiles = {
  'index.html': `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>Hello from Berth</title>
    <link rel="stylesheet" href="/style.css">
  </head>
  <body>
    <h1>Hello from Berth</h1>
    <p>This page was built from a git repository and is served by your own platform.</p>
  </body>
</html>
`,
  'style.css': 'body { font: 18px/1.6 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto; padding: 0 1rem }\n',
  '404.html': '<!doctype html><title>Not found</title><h1>There is no such page</h1>\n',
}

async function createDemoRepository(root: string): Promise<void> {
  const bare = join(root, 'demo/hello.git')
  if (existsSync(bare)) return
  await mkdir(dirname(bare), { recursive: true })
  const tree = await mkdtemp(join(root, 'hello-'))
  const git = (...args: string[]) => run('git', ['-C', tree, ...args])
  try {
    await git('init', '-q', '-b', 'main')
    for (const [name, text] of Object.entries(demoFiles)) await writeFile(join(tree, name), text)
    await git('add', '-A')
    await git('-c', 'user.name=Berth', '-c', 'user.email=demo@berth.test', 'commit', '-qm', 'Say hello')
    await git('clone', '-q', '--bare', tree, `${bare}.new`)
    await rename(`${bare}.new`, bare)
  } finally {
    await rm(tree, { recursive: true, force: true })
  }
}
