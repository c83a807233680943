// Where a webhook may point: rules on the URL itself, and on addresses, which hold again after names are resolved.
import { BlockList, isIP } from 'node:net'

// Not on the public internet, by the special-purpose registries of IANA (RFC 6890).
const privateIpv4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // Link-local, and the metadata service of most clouds.
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Looks public, but is the host agent of every Azure machine.
  '168.63.129.16/32',
]

// Within global unicast, but tunnels, documentation and protocol assignments; 2002::/16 wraps any IPv4 address.
const privateIpv6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

// IPv6 forms of an IPv4 address: mapped, and NAT64, which is how an IPv6-only network reaches all of IPv4.
const ipv4Prefixes = ['::ffff:', '64:ff9b::']

const refused = new BlockList()
// Everything of IPv6 that is outside these is loopback, local, multicast or unassigned.
const publicIpv6 = new BlockList()
publicIpv6.addSubnet('2000::', 3, 'ipv6')
for (const prefix of ipv4Prefixes) publicIpv6.addSubnet(`${prefix}0.0.0.0`, 96, 'ipv6')
for (const range of privateIpv6) {
  const [network = '', bits] = range.split('/')
  refused.addSubnet(network, Number(bits), 'ipv6')
}
for (const range of privateIpv4) {
  const [network = '', bits] = range.split('/')
  refused.addSubnet(network, Number(bits), 'ipv4')
  for (const prefix of ipv4Prefixes) refused.addSubnet(`${prefix}${network}`, 96 + Number(bits), 'ipv6')
}

/** Whether an IP address, as text, is one that anybody may be sent to. Anything that is no address is not. */
export function isPublicAddress(address: string): boolean {
  const version = isIP(address)
  // A zone id, as in fe80::1%eth0, only makes sense for local addresses.
  if (version === 0 || address.includes('%')) return false
  if (version === 4) return !refused.check(address, 'ipv4')
  return publicIpv6.check(address, 'ipv6') && !refused.check(address, 'ipv6')
}

export type TargetRules = { production: boolean; webhookAllowPrivate: boolean }

/** Why a webhook may not have this URL, or null if it may. What a name resolves to is checked when it is called. */
export function targetRefusal(text: string, rules: TargetRules): string | null {
  const schemes = rules.production ? 'https://' : 'https:// or http://'
  if (!URL.canParse(text) || !/^https?:\/\//i.test(text)) return `must be an absolute ${schemes} URL`
  const url = new URL(text)
  if (rules.production && url.protocol !== 'https:') return 'must start with https://'
  // Credentials would be shown to everyone who may read the webhook; a fragment is never sent.
  if (url.username !== '' || url.password !== '' || /^https?:\/\/[^/?#]*@/i.test(text)) {
    return 'must not hold credentials'
  }
  if (text.includes('#')) return 'must not have a fragment'
  if (rules.webhookAllowPrivate) return null
  // URL has already turned 0x7f.1, 2130706433 and the like into dotted decimals.
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '')
  const local = host === 'localhost' || host.endsWith('.localhost')
  if (local || (isIP(host) !== 0 && !isPublicAddress(host))) return 'must not point to a private or local address'
  return null
}
