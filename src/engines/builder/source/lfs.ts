// Fetches Git LFS files, if git-lfs is installed.
import { find } from '../../../sandbox/programs/tools.ts'
import { BuildFailure } from '../explain/failure.ts'
import type { BuildLog } from '../explain/log.ts'
import { asText, type Source } from '../tree/source-tree.ts'
import { type GitOptions, type RemoteOptions, runGit } from './git.ts'

const maxAttributesLength = 256 << 10
const maxAttributeFiles = 100

/** Returns whether the commit uses Git LFS, after fetching its objects into the bare repository. */
export async function fetchLfs(
  source: Source,
  git: GitOptions,
  { url, own = true, ...talking }: RemoteOptions & { url: string; own?: boolean },
  log: BuildLog,
): Promise<boolean> {
  const path = await attributesWithLfs(source)
  if (path === null) return false
  const fail = (why: string) => new BuildFailure('lfs_unavailable', `${asText(path)} keeps files in Git LFS, ${why}.`)
  if (source.submodules.some((module) => path.startsWith(`${module.path}/`))) {
    throw fail('which we do not fetch for submodules')
  }
  // Such an LFS server returns URLs that git-lfs would request unchecked.
  if (!own || talking.protocols === 'ssh') {
    throw fail('which we fetch only over HTTPS and from this installation’s repository host')
  }
  if ((await find('git-lfs', git.searchPath)) === undefined) {
    throw fail('and this installation has no git-lfs (Debian: apt install git-lfs). Ask its operator to install it')
  }
  log.system('Fetching files from Git LFS')
  const settings: Record<string, string> = {
    ...talking.settings,
    'remote.origin.url': git.local ? `file://${url}` : url,
    // Overrides the repository's .lfsconfig, which could name any host within this machine's reach.
    ...(git.local ? {} : { 'lfs.url': `${url.replace(/\/+$/, '')}/info/lfs` }),
    'lfs.concurrenttransfers': '4',
  }
  const fetched = await runGit(['lfs', 'fetch', 'origin', source.commit], git, log, { ...talking, settings })
  git.signal.throwIfAborted()
  if (!fetched.ok) throw fail('which could not be fetched; the log says why')
  return true
}

async function attributesWithLfs(source: Source): Promise<string | null> {
  let files = 0
  for (const path of source.entries.keys()) {
    if (path !== '.gitattributes' && !path.endsWith('/.gitattributes')) continue
    if (++files > maxAttributeFiles) return null
    const text = await source.text(path, maxAttributesLength)
    if (text !== null && namesLfs(text)) return path
  }
  return null
}

/** Whether a .gitattributes file uses the Git LFS filter. */
export const namesLfs = (attributes: string): boolean =>
  // Split manually, because with the flag `m` each `\r` would also start a line, which makes the search quadratic.
  attributes.split('\n').some((line) => /^[^#]*\bfilter=lfs\b/.test(line))
