// The stored logins: one token per server, in a file that only its owner can read.
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { exitCodes, Failure } from './failures.ts'

export type Logins = { current: string | null; tokens: Record<string, string> }

function directoryOf(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config'), 'berth')
}

export const fileOf = (env = process.env) => join(directoryOf(env), 'logins.json')

export async function readLogins(env = process.env): Promise<Logins> {
  const file = fileOf(env)
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw new Failure(exitCodes.failed, `We couldn't read ${file}: ${error.message}`)
  })
  if (text === null) return { current: null, tokens: {} }
  try {
    const { current, tokens } = JSON.parse(text)
    return { current: typeof current === 'string' ? current : null, tokens: { ...tokens } }
  } catch {
    throw new Failure(exitCodes.failed, `${file} is not JSON.`, 'Delete it, then run `berth login` to sign in again.')
  }
}

/** Writes a new file and renames it, so that a killed process leaves the old one intact. */
async function writeLogins(logins: Logins, env: NodeJS.ProcessEnv): Promise<void> {
  await mkdir(directoryOf(env), { recursive: true, mode: 0o700 })
  const file = fileOf(env)
  const draft = `${file}.${process.pid}`
  await writeFile(draft, `${JSON.stringify(logins, null, 2)}\n`, { mode: 0o600 })
  await chmod(draft, 0o600)
  await rename(draft, file)
}

export async function storeLogin(url: string, token: string, env = process.env): Promise<void> {
  const { tokens } = await readLogins(env)
  await writeLogins({ current: url, tokens: { ...tokens, [url]: token } }, env)
}

/** Deletes and returns the stored token of the server; null if there was none. */
export async function deleteLogin(url: string, env = process.env): Promise<string | null> {
  const { current, tokens } = await readLogins(env)
  const { [url]: token, ...rest } = tokens
  if (token === undefined) return null
  await writeLogins({ current: current === url ? null : current, tokens: rest }, env)
  return token
}
