// Decides where the cluster is: in the data directory or, for root, where the unprivileged account can reach it.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, chown, lstat, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Account, ENVIRONMENT, isRoot, tryAs, unprivilegedAccounts } from './account.ts'
import { reachableBinaries } from './binaries.ts'
import { claim, endOrphan } from './processes.ts'

/** `path` holds cluster/ with data/ and its password. It appears by one rename, so it is always complete. */
export type Home = { path: string; binaries: string; account: Account | undefined }

const clusterIn = (home: string) => join(home, 'cluster')
const pointerIn = (directory: string) => join(directory, 'elsewhere')
const backlinkIn = (home: string) => join(home, 'belongs-to')

export async function findHome(directory: string, binaries: string): Promise<Home> {
  if (!isRoot()) return { path: directory, binaries, account: undefined }
  const pointed = await followPointer(directory)
  // The owner of an existing cluster comes first: it may have been created before root ran Berth, or as `nobody`.
  const owner = await stat(join(clusterIn(pointed ?? directory), 'data')).catch(() => undefined)
  const accounts = owner && owner.uid !== 0 ? [{ uid: owner.uid, gid: owner.gid }] : await unprivilegedAccounts()
  for (const account of accounts) {
    const path = await reachableHome(directory, pointed, account)
    if (path !== undefined) return { path, binaries: await reachableBinaries(binaries, account, path), account }
  }
  throw new Error(
    'PostgreSQL does not run as root, and no user "postgres" or "nobody" can be used instead; run Berth as an ordinary user or set DATABASE_URL.',
  )
}

async function reachableHome(
  directory: string,
  pointed: string | undefined,
  account: Account,
): Promise<string | undefined> {
  if (pointed !== undefined) {
    if (!(await isUsable(pointed, account))) return undefined
    await writeFile(backlinkIn(pointed), directory, { mode: 0o600 })
    await moveCluster(directory, pointed)
    return pointed
  }
  if (await isUsable(directory, account)) return directory
  for (const base of ['/var/lib/berth', tmpdir()]) {
    const shelter = await openShelter(base, directory, account)
    if (shelter === undefined) continue
    // The pointer comes before the move: a cluster without one counts as abandoned.
    await writeFile(pointerIn(directory), shelter, { mode: 0o600 })
    await moveCluster(directory, shelter)
    return shelter
  }
  return undefined
}

export async function followPointer(directory: string): Promise<string | undefined> {
  const path = await readFile(pointerIn(directory), 'utf8').catch(() => undefined)
  return path !== undefined && (await isOurs(path)) ? path : undefined
}

// In /tmp, anyone can create a link or a directory of this name, so the type and the owner are checked.
async function isOurs(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined)
  return found?.isDirectory() === true && found.uid === 0
}

/** Tries, as the account, what PostgreSQL will do. This finds problems with permissions, mounts and squashed owners. */
async function isUsable(home: string, account: Account): Promise<boolean> {
  let attempt: string | undefined
  try {
    if ((await stat(home)).uid === 0) {
      // The account may traverse to its cluster, but not replace what root writes next to it.
      await chown(home, 0, account.gid)
      await chmod(home, 0o710)
    }
    attempt = await mkdtemp(join(home, 'attempt-'))
    await chown(attempt, account.uid, account.gid)
    if (((await stat(attempt)).mode & 0o077) !== 0) return false
    return (await tryAs(account, '/bin/sh', ['-c', 'cd "$0" && : >file && test -O "$0"', attempt])) === undefined
  } catch {
    return false
  } finally {
    if (attempt !== undefined) await rm(attempt, { recursive: true, force: true })
  }
}

// The name is random, so nobody can predict it, and a recreated data directory never finds an old cluster.
async function openShelter(base: string, directory: string, account: Account): Promise<string | undefined> {
  const path = join(base, `berth-postgres-${randomBytes(16).toString('hex')}`)
  try {
    await mkdir(base, { recursive: true, mode: 0o755 })
    const { uid, mode } = await stat(base)
    const othersMayRename = (mode & 0o022) !== 0 && (mode & 0o1000) === 0
    if (uid !== 0 || othersMayRename) return undefined
    await mkdir(path, { mode: 0o700 })
  } catch {
    return undefined
  }
  if (!(await isUsable(path, account))) {
    await rm(path, { recursive: true, force: true })
    return undefined
  }
  await writeFile(backlinkIn(path), directory, { mode: 0o600, flag: 'wx' })
  await wipeAbandoned(base, directory, path)
  return path
}

// Only clusters of this data directory: another one may be missing because its disk isn't mounted. That doesn't happen
// to temporary directories, of which tests leave dozens behind.
async function wipeAbandoned(base: string, directory: string, current: string): Promise<void> {
  for (const name of await readdir(base)) {
    const path = join(base, name)
    if (!name.startsWith('berth-postgres-') || path === current || !(await isOurs(path))) continue
    const owner = await readFile(backlinkIn(path), 'utf8').catch(() => '')
    const deleted = owner.startsWith(join(tmpdir(), '/')) && !(await exists(owner))
    if (owner !== directory && !deleted) continue
    // Fails while a Berth whose data directory was deleted still runs.
    const release = await claim(path).catch(() => undefined)
    if (release === undefined) continue
    try {
      await endOrphan(join(clusterIn(path), 'data'))
      await rm(path, { recursive: true, force: true })
    } finally {
      await release()
    }
  }
}

// For a checkout that was moved, or whose parent directory was closed, after its first start.
async function moveCluster(directory: string, shelter: string): Promise<void> {
  const [from, to] = [clusterIn(directory), clusterIn(shelter)]
  if (!(await exists(from)) || (await exists(to))) return
  const draft = `${to}.draft-${randomBytes(4).toString('hex')}`
  await promisify(execFile)('cp', ['-pR', from, draft], { env: ENVIRONMENT })
  await rename(draft, to)
  await rm(from, { recursive: true, force: true })
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}
