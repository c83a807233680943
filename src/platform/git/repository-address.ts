// Parses how a project names its repository: `<owner>/<repository>` at the installation's host, or an HTTPS or SSH URL.
import { hostRefusal } from '../http/public-address.ts'

export type RepositoryAddress = {
  protocol: 'http:' | 'https:' | 'ssh:'
  /** In lower case; an IPv4 address in dotted decimals. */
  hostname: string
  /** Empty for the default port. */
  port: string
  /** The SSH user; empty otherwise. */
  user: string
  /** Without a leading slash. */
  path: string
}

const part = '[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?/(?!\\.)[A-Za-z0-9._-]*[A-Za-z0-9_-]'
const host = '[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?'
const user = '[A-Za-z_][A-Za-z0-9_-]{0,31}'
// No `..`, and no name that starts with a dash, which a program could take for an option.
const path = '(?:(?![.-])[A-Za-z0-9._+-]+/)*(?![.-])[A-Za-z0-9._+-]+/?'

/** All forms, for the schema of a project. */
export const repositoryPattern = `^(?:${part}|https?://${host}(?::\\d{1,5})?/${path}|ssh://${user}@${host}(?::\\d{1,5})?/${path}|${user}@${host}:/?${path})$`

const web = new RegExp(`^(https?:)//(${host})(?::(\\d{1,5}))?/(${path})$`)
const ssh = new RegExp(`^ssh://(${user})@(${host})(?::(\\d{1,5}))?/(${path})$`)
const scp = new RegExp(`^(${user})@(${host}):/?(${path})$`)

/** Normalizes the host, so that 0x7f.1 is recognized as 127.0.0.1. Null if the host or port is invalid. */
function placeOf(hostname: string, port: string | undefined, usual: number) {
  const text = `http://${hostname}:${port || usual}`
  if (!URL.canParse(text)) return null
  return { hostname: new URL(text).hostname.replace(/\.$/, ''), port: Number(port || usual) === usual ? '' : port! }
}

/** Null for `<owner>/<repository>` and for invalid URLs. */
export function readAddress(repo: string): RepositoryAddress | null {
  const [, protocol, webHost = '', webPort, webPath = ''] = web.exec(repo) ?? []
  if (protocol) {
    const place = placeOf(webHost, webPort, protocol === 'https:' ? 443 : 80)
    return place && { protocol: protocol as 'https:', ...place, user: '', path: webPath }
  }
  const [, sshUser, sshHost = '', sshPort, sshPath = ''] = ssh.exec(repo) ?? []
  const [, scpUser, scpHost = '', scpPath = ''] = scp.exec(repo) ?? []
  const name = sshUser ?? scpUser
  if (!name) return null
  const place = placeOf(sshUser ? sshHost : scpHost, sshPort, 22)
  return place && { protocol: 'ssh:', ...place, user: name, path: sshUser ? sshPath : scpPath }
}

export function originOf({ protocol, hostname, port }: RepositoryAddress): string {
  return `${protocol}//${hostname}${port ? `:${port}` : ''}`
}

export function urlOfAddress({ protocol, hostname, port, user, path }: RepositoryAddress): string {
  return `${protocol}//${user ? `${user}@` : ''}${hostname}${port ? `:${port}` : ''}/${path}`
}

/** The SSH address of the same repository, as the usual hosts have it. */
export function overSsh(address: RepositoryAddress): RepositoryAddress {
  return address.protocol === 'ssh:' ? address : { ...address, protocol: 'ssh:', port: '', user: 'git' }
}

/** `<owner>/<repository>`, as repository hosts write it in pushes and in their APIs. */
export function repositoryName(repo: string): string {
  return (readAddress(repo)?.path ?? repo).replace(/\/$/, '').replace(/\.git$/, '')
}

export type AddressRules = { production: boolean; webhookAllowPrivate: boolean }

/** Why a project can't use this repository; null if it can. What the name resolves to is checked when it is used. */
export function addressRefusal(repo: string, rules: AddressRules): string | null {
  const address = readAddress(repo)
  if (address === null) return /[:@]/.test(repo) ? 'must be a URL with a valid host and port' : null
  if (rules.production && address.protocol === 'http:') return 'must be an https:// or SSH URL'
  return rules.webhookAllowPrivate ? null : hostRefusal(address.hostname)
}
