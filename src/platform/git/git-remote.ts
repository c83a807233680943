// What git needs to reach one repository: its address, checked, and the access to it. Nothing of that outlives the fetch.
import { readFile, rm, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { makeKeyFolder } from '../files/key-folders.ts'
import type { Reach } from '../http/checked-lookup.ts'
import { originOf, overSsh, type RepositoryAddress, urlOfAddress } from './repository-address.ts'
import { hostKeysIn } from './ssh-keys.ts'

/** What a project shows to the host of its repository, opened. `origin` is the only place that ever gets it. */
export type RepositoryAccess =
  | { kind: 'token'; origin: string; username: string; token: string }
  | {
      kind: 'deploy_key'
      origin: string
      privateKey: string
      /** Empty: those that the host shows first are taken, and kept by `learned`. */
      hostKeys: string[]
      learned(hostKeys: string[]): Promise<void>
    }

/** Why a host was not asked, or would not answer us. */
export type Refusal = 'denied' | 'host_key_changed' | 'address_refused' | 'unreachable'

export class RemoteRefused extends Error {
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super(`the repository host: ${refusal}`)
    this.refusal = refusal
  }
}

/** For the processes of git that talk to the host, and for no other. */
export type GitRemote = {
  url: string
  /** As in GIT_ALLOW_PROTOCOL. */
  protocols: string
  settings: Record<string, string>
  environment: Record<string, string>
  /** The installation's own host, whose answers are trusted more than those of a host that a customer named. */
  own: boolean
  hasAccess: boolean
  /** To be called whatever became of it. */
  close(): Promise<void>
}

/** What the access shows to logs that must not have it. */
export function secretsOf(access: RepositoryAccess | null): string[] {
  if (access?.kind !== 'token') return []
  return [access.token, basic(access).slice('Basic '.length)]
}

const basic = ({ username, token }: { username: string; token: string }) =>
  `Basic ${Buffer.from(`${username}:${token}`).toString('base64')}`

export type RemoteOptions = { address: RepositoryAddress; own: boolean; access: RepositoryAccess | null; reach: Reach }

/** Access to another host than that of the repository is never used. */
export async function openRemote({ address: asked, own, access, reach }: RemoteOptions): Promise<GitRemote> {
  const used = accessFor(asked, access)
  const address = used?.kind === 'deploy_key' ? overSsh(asked) : asked
  if (address.protocol === 'ssh:' && !used) throw new RemoteRefused('denied')
  // What a customer names is resolved once, here, and git connects to what was checked.
  const addresses = own ? [] : await allowedAddresses(address.hostname, reach)
  const rest = { url: urlOfAddress(address), own, hasAccess: used !== null }
  if (used?.kind === 'deploy_key') return { ...rest, ...(await overKey(address, used, addresses[0])) }
  const settings: Record<string, string> = {}
  // Another host would be asked unchecked, and might be shown the token.
  if (!own || used) settings['http.followRedirects'] = 'false'
  if (addresses.length > 0 && isIP(address.hostname) === 0) {
    const port = address.port || (address.protocol === 'https:' ? '443' : '80')
    const pinned = addresses.map((one) => (one.includes(':') ? `[${one}]` : one)).join(',')
    settings['http.curloptResolve'] = `${address.hostname}:${port}:${pinned}`
  }
  if (used) settings[`http.${originOf(address)}/.extraHeader`] = `Authorization: ${basic(used)}`
  return { ...rest, protocols: 'http:https', settings, environment: {}, async close() {} }
}

/** The access that belongs to the host of the repository, over HTTP or SSH. */
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

/** SSH with this key alone, in files that are gone when the fetch is over. */
async function overKey(
  { hostname }: RepositoryAddress,
  { privateKey, hostKeys, learned }: Extract<RepositoryAccess, { kind: 'deploy_key' }>,
  connectTo: string | undefined,
) {
  const directory = await makeKeyFolder()
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

/** Whether git failed because it did not reach the host, or the host was down: it may be there again in a moment. */
export function isUnreachable(said: string): boolean {
  const own = said.replace(/^remote:.*$/gm, '')
  return /Could not resolve host|Couldn't connect to server|Failed to connect to|Connection (refused|timed out|reset)|Network is unreachable|No route to host|returned error: (429|5\d\d)|Temporary failure in name resolution|Empty reply from server/i.test(
    own,
  )
}

/** What git said when it failed, or null where it was something else. Lines of the remote end are its own business. */
export function refusalIn(said: string, hasAccess: boolean): Refusal | null {
  const own = said.replace(/^remote:.*$/gm, '')
  if (/HOST IDENTIFICATION HAS CHANGED|Host key verification failed|host key .* has changed/i.test(own)) {
    return 'host_key_changed'
  }
  const wantsLogin =
    /could not read (Username|Password)|Authentication failed|Permission denied \(|returned error: 40[13]/
  if (wantsLogin.test(own)) return 'denied'
  // Hosts deny that there is a repository to whom they do not show it.
  return hasAccess && /repository .*not found|returned error: 404|does not appear to be a git/i.test(own)
    ? 'denied'
    : null
}
