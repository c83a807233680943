// The nftables rules of a sandbox's network namespace.
import { isIPv4 } from 'node:net'
import { inwardIpv4 } from '../../platform/http/public-address.ts'

/**
 * Filters only outgoing packets, because only replies come in. Rejects instead of dropping, so that connections to
 * private addresses fail immediately. Rejects all IPv6, so that the list of ranges suffices.
 */
export function firewallRules(own: readonly string[]): string {
  const ranges = inwardIpv4.map(([network, prefix]) => `${network}/${prefix}`)
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
