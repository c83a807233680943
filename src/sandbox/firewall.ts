// The rules of a sandbox's network namespace, in the language of nftables.
import { isIPv4 } from 'node:net'
import { INWARD_IPV4 } from './addresses.ts'

/**
 * Outward packets alone are judged, since nothing comes in that was not asked for. Refused, not dropped: a build that
 * asks for a private address is told at once. IPv6 goes nowhere, so that this list of ranges is the only one.
 */
export function firewallRules(own: readonly string[]): string {
  const ranges = INWARD_IPV4.map(([network, prefix]) => `${network}/${prefix}`)
  const addresses = own.filter(isIPv4)
  const refusals = [ranges, addresses].filter((set) => set.length > 0)
  return `table inet berth {
  chain refuse {
    meta l4proto tcp reject with tcp reset
    reject with icmpx admin-prohibited
  }
  chain output {
    type filter hook output priority filter; policy accept;
    oif lo accept
    meta nfproto ipv6 jump refuse
${refusals.map((set) => `    ip daddr { ${set.join(', ')} } jump refuse`).join('\n')}
  }
}
`
}
