// What git needs to reach a repository: its verified address and credentials. Nothing of it outlives the fetch.
import { readFile, rm, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { createKeyFolder } from '../files/key-folders.ts'
import type { Reach } from '../http/checked-lookup.ts'
import { originOf, overSsh, type RepositoryAddress, urlOfAddress } from './repository-address.ts'
import { hostKeysIn } from './ssh-keys.ts'

/** A project's decrypted credentials for its repository host. They are only ever sent to `origin`. */
export type RepositoryAccess =
  | { kind: 'token'; origin: string; username: string; token: string }
  | {
      kind: 'deploy_key'
      origin: string
      privateKey: string
      /** If empty, the first host keys that the host presents are trusted, and passed to `learned`. */
      hostKeys: string[]
      learned(hostKeys: string[]): Promise<void>
    }

/** Why we didn't contact a host, or why it refused us. */
export type Refusal = 'denied' | 'host_key_changed' | 'address_refused' | 'unreachable'

export class RemoteRefused extends Error {
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super(`the repository host: ${refusal}`)
    this.refusal = refusal
  }
}

/** Only for git processes that talk to the host. */
export type GitRemote = {
  url: string
  /** The value of GIT_ALLOW_PROTOCOL. */
  protocols: string
  settings: Record<string, string>
  environment: Record<string, string>
  /** Whether it is the installation's own host, which is trusted more than one that a customer named. */
  own: boolean
  hasAccess: boolean
  /** Must always be called in the end. */
  close(): Promise<void>
}

/** The secrets of the credentials, to be masked in logs. */
export function secretsOf(access: RepositoryAccess | null): string[] {
  if (access?.kind !== 'token') return []
  return [access.token, basic(access).slice('Basic '.length)]
}

const basic = ({ username, token }: { username: string; token: string }) =>
  `Basic ${Buffer.from(`${username}:${token}`).toString('base64')}`

export type RemoteOptions = { address: RepositoryAddress; own: boolean; access: RepositoryAccess | null; reach: Reach }

/** Never uses credentials for another host than the repository's. */
export async function openRemote({ address: requested, own, access, reach }: RemoteOptions): Promise<GitRemote> {
  const used = accessFor(requested, access)
  const address = used?.kind === 'deploy_key' ? overSsh(requested) : requested
  if (address.protocol === 'ssh:' && !used) throw new RemoteRefused('denied')
  // A customer's host name is resolved once, here, and git connects to the verified address.
  const addresses = own ? [] : await allowedAddresses(address.hostname, reach)
  const rest = { url: urlOfAddress(address), own, hasAccess: used !== null }
  if (used?.kind === 'deploy_key') return { ...rest, ...(await overKey(address, used, addresses[0])) }
  const settings: Record<string, string> = {}
  // A redirect would lead to an unverified host, which might receive the token.
  if (!own || used) settings['http.followRedirects'] = 'false'
  if (addresses.length > 0 && isIP(address.hostname) === 0) {
    const port = address.port || (address.protocol === 'https:' ? '443' : '80')
    const pinned = addresses.map((one) => (one.includes(':') ? `[${one}]` : one)).join(',')
    settings['http.curloptResolve'] = `${address.hostname}:${port}:${pinned}`
  }
  if (used) settings[`http.${originOf(address)}/.extraHeader`] = `Authorization: ${basic(used)}`
  return { ...rest, protocols: 'http:https', settings, environment: {}, async close() {} }
}

/** The credentials, if they are for the repository's host, over HTTP or SSH. */
export function accessFor(address: RepositoryAddress, access: RepositoryAccess | null): RepositoryAccess | null {
  if (access === null) return null
  const wanted = access.kind === 'deploy_key' ? overSsh(address) : address
  return originOf(wanted) === access.origin ? access : null
}

async function allowedAddresses(hostname: string, { mayReach, resolve }: Reach): Promise<string[]> {
  const found = isIP(hostname) ? [hostname] : (await resolve(hostname).catch(() => [])).map(({ address }) => address)
  const allowed = found.filter(mayReach)
  if (found.length === 0) throw new RemoteRefused('unreachable')
  if (allowed.length === 0) throw new RemoteRefused('address_refused')
  return allowed
}

/** Settings for SSH with this key only. Its files are deleted when the fetch is over. */
async function overKey(
  { hostname }: RepositoryAddress,
  { privateKey, hostKeys, learned }: Extract<RepositoryAccess, { kind: 'deploy_key' }>,
  connectTo: string | undefined,
) {
  const directory = await createKeyFolder()
  const [keyFile, hostsFile] = [join(directory, 'key'), join(directory, 'hosts')]
  await writeFile(keyFile, privateKey, { mode: 0o600 })
  await writeFile(hostsFile, hostKeys.map((key) => `${hostname} ${key}\n`).join(''), { mode: 0o600 })
  const options: Record<string, string> = {
    IdentityFile: keyFile,
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    BatchMode: 'yes',
    PreferredAuthentications: 'publickey',
    UserKnownHostsFile: hostsFile,
    GlobalKnownHostsFile: '/dev/null',
    StrictHostKeyChecking: hostKeys.length > 0 ? 'yes' : 'accept-new',
    HostKeyAlias: hostname,
    HashKnownHosts: 'no',
    UpdateHostKeys: 'no',
    CheckHostIP: 'no',
    ...(connectTo && { HostName: connectTo }),
    ConnectTimeout: '10',
    ServerAliveInterval: '15',
    ClearAllForwardings: 'yes',
    LogLevel: 'ERROR',
  }
  const words = Object.entries(options).map(([name, value]) => `-o '${name}=${value.replaceAll("'", "'\\''")}'`)
  return {
    protocols: 'ssh',
    settings: {},
    environment: { GIT_SSH_COMMAND: `ssh -F none ${words.join(' ')}`, GIT_SSH_VARIANT: 'ssh' },
    async close() {
      try {
        const shown = hostKeys.length > 0 ? [] : hostKeysIn(await readFile(hostsFile, 'utf8'))
        if (shown.length > 0) await learned(shown)
      } finally {
        await rm(directory, { recursive: true, force: true })
      }
    },
  }
}

/** Whether git failed because the host was unreachable or down, so that a retry may succeed. */
export function isUnreachable(said: string): boolean {
  const own = said.replace(/^remote:.*$/gm, '')
  return /Could not resolve host|Couldn't connect to server|Failed to connect to|Connection (refused|timed out|reset)|Network is unreachable|No route to host|returned error: (429|5\d\d)|Temporary failure in name resolution|Empty reply from server/i.test(
    own,
  )
}

/** Why git failed; null for other reasons. Ignores lines from the remote, which may say anything. */
export function refusalIn(said: string, hasAccess: boolean): Refusal | null {
  const own = said.replace(/^remote:.*$/gm, '')
  if (/HOST IDENTIFICATION HAS CHANGED|Host key verification failed|host key .* has changed/i.test(own)) {
    return 'host_key_changed'
  }
  const wantsLogin =
    /could not read (Username|Password)|Authentication failed|Permission denied \(|returned error: 40[13]/
  if (wantsLogin.test(own)) return 'denied'
  // Hosts claim that a repository doesn't exist if the client can't read it.
  return hasAccess && /repository .*not found|returned error: 404|does not appear to be a git/i.test(own)
    ? 'denied'
    : null
}
