// Explains which host a command couldn't reach, and why.
import { leadsInward } from '../../../sandbox/network/addresses.ts'

export type NetworkAccess = {
  /** The project's buildNetwork setting. */
  network: 'public' | 'registry' | 'none'
  /** Each `host:port` that `registry` allows. */
  hosts: readonly string[]
}

// Error messages of Node, curl, git, wget, Python and our own proxy.
const hostPatterns: readonly RegExp[] = [
  /getaddrinfo (?:ENOTFOUND|EAI_AGAIN) ([\w.-]{1,253})/,
  /connect (?:ECONNREFUSED|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH) ([\w.:-]{1,253}):\d/,
  /Could not resolve host: '?([\w.-]{1,253})/,
  /Failed to connect to ([\w.-]{1,253}) port/,
  /unable to resolve host address [‘'"]([\w.-]{1,253})/,
  /\b(?<![\w.-])([\w.-]{1,253}):\d{1,5} is not on the list of hosts/,
  /\b(?<![\w.-])([\w.-]{1,253}) has no public address/,
  /request to https?:\/\/([\w.-]{1,253})[^\s]{0,500} failed/,
  /(fonts\.googleapis\.com)/,
]

export const unreachable =
  /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)\b|Could not resolve host|unable to resolve host|Failed to connect to |is not on the list of hosts|has no public address|Failed to fetch .{1,200} from Google Fonts/

export function reasonFor(printed: string, { network, hosts }: NetworkAccess): string {
  const isFonts = printed.includes('from Google Fonts')
  const printedHost = hostPatterns.map((name) => name.exec(printed)?.[1]).find((found) => found !== undefined)
  const host = printedHost ?? (isFonts ? 'fonts.googleapis.com' : null)
  if (host !== null && (host === 'localhost' || /^(?:127\.|::1$|0\.0\.0\.0$)/.test(host))) {
    return `Nothing listens at ${host} in the build, which has its own network.`
  }
  const what = host ?? 'A host'
  if (network === 'none') return `${what} could not be reached: the project’s buildNetwork is none.`
  if (network === 'registry' && !hosts.some((one) => one.slice(0, one.lastIndexOf(':')) === host)) {
    return `${what} could not be reached: the project’s buildNetwork is registry, which allows only the package registry and the repository host.`
  }
  if (host !== null && (/^[\d.]+$/.test(host) || host.includes(':')) && leadsInward(host)) {
    return `${host} could not be reached: it is a private address, and builds can only reach public ones.`
  }
  if (printed.includes(`${host} has no public address`)) {
    return `${host} could not be reached: it has no public address, and builds can only reach public ones.`
  }
  return `${what} could not be reached: check its name, and that it is up.`
}
