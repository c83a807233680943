// Finds the system user that PostgreSQL runs as when Berth is root, since PostgreSQL refuses to be root itself.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

/** Passed to spawn as is. */
export type Account = { uid: number; gid: number }

// Our environment holds secrets that PostgreSQL must not get, and PG* variables would change its behavior.
export const ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' }

export function isRoot(): boolean {
  return process.getuid?.() === 0
}

/** The accounts to try, best first. No user is ever added to the machine. */
export async function unprivilegedAccounts(): Promise<Account[]> {
  const users = new Map<string, Account>()
  for (const line of (await readFile('/etc/passwd', 'utf8')).split('\n')) {
    const [name, , uid, gid] = line.split(':')
    if (name && Number(uid) > 0) users.set(name, { uid: Number(uid), gid: Number(gid) })
  }
  return ['postgres', 'nobody'].flatMap((name) => users.get(name) ?? [])
}

/** Runs a short command as the account; returns undefined if it succeeds, otherwise its output. */
export async function tryAs(account: Account, command: string, args: string[]): Promise<string | undefined> {
  try {
    await promisify(execFile)(command, args, { ...account, cwd: '/', env: ENVIRONMENT, timeout: 10_000 })
    return undefined
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string }
    return stderr?.trim() || message
  }
}
