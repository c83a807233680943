// Which server is spoken to, and with which token. The environment goes before the stored login.
import { exitCodes, Failure, usage } from './failures.ts'
import { readLogins } from './logins.ts'

export type Given = { url?: string | undefined; token?: string | undefined }

/** The origin of a server; `/api` at its end is allowed. */
export function originOf(text: string): string {
  let url: URL
  try {
    url = new URL(/^[a-z]+:\/\//i.test(text) ? text : `https://${text}`)
  } catch {
    throw usage(`${text} is not the address of a server, such as https://berth.example.com.`)
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw usage(`${text} must begin with https://.`)
  if (url.username || url.password) throw usage('The address of a server has no user name or password.')
  // A token that went over the network in clear text is lost.
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw usage(`${url.origin} is not encrypted: a token is sent over https:// only, or to this machine.`)
  }
  return url.origin
}

export function isLoopback(host: string): boolean {
  return /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(host)
}

/** The server: of the option, the environment, the login, or the one that this file was fetched from. */
export async function findServer(given: Given, home: string | null, env = process.env): Promise<string> {
  const named = given.url || env.BERTH_URL || (await readLogins(env)).current || home
  if (!named)
    throw usage('No server is known.', 'Name it by --url or BERTH_URL, or sign in by `berth login --url <address>`.')
  return originOf(named)
}

export async function findToken(server: string, given: Given, env = process.env): Promise<string | null> {
  // A stored token goes to the server that it is of, and to no other.
  return given.token || env.BERTH_TOKEN || ((await readLogins(env)).tokens[server] ?? null)
}

export async function requireToken(server: string, given: Given, env = process.env): Promise<string> {
  const token = await findToken(server, given, env)
  if (!token) {
    throw new Failure(
      exitCodes.notSignedIn,
      `You are not signed in to ${server}.`,
      'Sign in by `berth login`, or set BERTH_TOKEN.',
    )
  }
  if (!/^[\x21-\x7e]{1,500}$/.test(token)) throw usage('The token has characters that no token has.')
  return token
}
