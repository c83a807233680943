// Which IP addresses and hosts are on the public internet, according to IANA's special-purpose registries (RFC 6890).
import { BlockList, isIP } from 'node:net'

type Range = readonly [network: string, bits: number]

/** IPv4 ranges that lead to the machine itself, its network, or its cloud's metadata service. */
export const inwardIpv4: readonly Range[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Azure's host endpoint for virtual machines, although the address looks public.
  ['168.63.129.16', 32],
  // Link-local, including the metadata service of most clouds.
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  // Multicast and reserved.
  ['224.0.0.0', 3],
]

// Documentation, and the deprecated 6to4 relays.
const unusedIpv4: readonly Range[] = [
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
]

// Part of global unicast, but used for tunnels, documentation and protocols; 2002::/16 embeds any IPv4 address.
const unusedIpv6: readonly Range[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

// IPv6 forms of IPv4 addresses: mapped, and NAT64, through which an IPv6-only network reaches all of IPv4.
const ipv4Prefixes = ['::ffff:', '64:ff9b::']

const refused = new BlockList()
// All other IPv6 addresses are loopback, local, multicast or unassigned.
const publicIpv6 = new BlockList()
publicIpv6.addSubnet('2000::', 3, 'ipv6')
for (const prefix of ipv4Prefixes) publicIpv6.addSubnet(`${prefix}0.0.0.0`, 96, 'ipv6')
for (const [network, bits] of unusedIpv6) refused.addSubnet(network, bits, 'ipv6')
for (const [network, bits] of [...inwardIpv4, ...unusedIpv4]) {
  refused.addSubnet(network, bits, 'ipv4')
  for (const prefix of ipv4Prefixes) refused.addSubnet(`${prefix}${network}`, 96 + bits, 'ipv6')
}

/** Whether a text is a public IP address. */
export function isPublicAddress(address: string): boolean {
  const version = isIP(address)
  // A zone id, as in fe80::1%eth0, only makes sense for local addresses.
  if (version === 0 || address.includes('%')) return false
  if (version === 4) return !refused.check(address, 'ipv4')
  return publicIpv6.check(address, 'ipv6') && !refused.check(address, 'ipv6')
}

// Names that don't exist in public DNS (RFC 6761, 6762 and 8375, and `internal`, which ICANN reserves for private networks).
const localSuffixes = ['localhost', 'local', 'internal', 'home.arpa', 'test', 'invalid']

// URL has already turned 0x7f.1, 2130706433 and the like into dotted decimals.
const plain = (hostname: string) => hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '')

const isLocalName = (host: string) =>
  !host.includes('.') || localSuffixes.some((suffix) => `.${host}`.endsWith(`.${suffix}`))

/** Why customers can't make us connect to a URL's host; null if they can. What a name resolves to is checked when it is used. */
export function hostRefusal(hostname: string, mayReach = isPublicAddress): string | null {
  const host = plain(hostname)
  const isRefused = isIP(host) === 0 ? isLocalName(host) && !mayReach('127.0.0.1') : !mayReach(host)
  return isRefused ? 'must not point to a private or local address' : null
}

/** Whether the host of a URL is this machine. */
export function isLoopback(hostname: string): boolean {
  const host = plain(hostname)
  return `.${host}`.endsWith('.localhost') || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}
