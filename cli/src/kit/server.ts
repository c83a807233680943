// Chooses the server and the token. The environment overrides the stored login.
import { exitCodes, Failure, usage } from './failures.ts'
import { readLogins } from './logins.ts'

export type ServerOptions = { url?: string | undefined; token?: string | undefined }

/** The origin of a server; a trailing `/api` is allowed. */
export function originOf(text: string): string {
  let url: URL
  try {
    url = new URL(/^[a-z]+:\/\//i.test(text) ? text : `https://${text}`)
  } catch {
    throw usage(`${text} is not the URL of a server, such as https://berth.example.com.`)
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw usage(`${text} must start with https://.`)
  if (url.username || url.password) throw usage('The URL of a server must not have a user name or password.')
  // A token sent in clear text is compromised.
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw usage(`${url.origin} is not encrypted. We send tokens only over https:// or to this machine.`)
  }
  return url.origin
}

export function isLoopback(host: string): boolean {
  return /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(host)
}

/** The server: from the option, the environment, the login, or where this file was downloaded from. */
export async function findServer(options: ServerOptions, home: string | null, env = process.env): Promise<string> {
  const url = options.url || env.BERTH_URL || (await readLogins(env)).current || home
  if (!url) throw usage('No server was given.', 'Add --url, set BERTH_URL, or run `berth login --url <url>`.')
  return originOf(url)
}

export async function findToken(server: string, options: ServerOptions, env = process.env): Promise<string | null> {
  // A stored token is sent only to its own server.
  return options.token || env.BERTH_TOKEN || ((await readLogins(env)).tokens[server] ?? null)
}

export async function requireToken(server: string, options: ServerOptions, env = process.env): Promise<string> {
  const token = await findToken(server, options, env)
  if (!token) {
    throw new Failure(
      exitCodes.notSignedIn,
      `You aren't signed in to ${server}.`,
      'Run `berth login`, or set BERTH_TOKEN.',
    )
  }
  if (!/^[\x21-\x7e]{1,500}$/.test(token)) throw usage('The token is malformed. Check BERTH_TOKEN or --token.')
  return token
}
