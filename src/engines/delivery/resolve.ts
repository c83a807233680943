// From host names to addresses, in a way that a slow name server of one receiver does not delay the others.

import type { LookupAddress } from 'node:dns'
import { lookup, Resolver } from 'node:dns/promises'

export type Resolve = (name: string) => Promise<LookupAddress[]>

const questionTimeoutMs = 2_000
const questionTries = 2

/**
 * Asks name servers directly. The system's own way runs on four threads that all of Node shares, so four receivers
 * whose name servers do not answer would stop everything else.
 */
export function createResolve(servers: readonly string[]): Resolve {
  const resolver = new Resolver({ timeout: questionTimeoutMs, tries: questionTries })
  if (servers.length > 0) resolver.setServers(servers)
  return async (name) => {
    const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const found: LookupAddress[] = []
    if (ipv4.status === 'fulfilled') found.push(...ipv4.value.map((address) => ({ address, family: 4 })))
    if (ipv6.status === 'fulfilled') found.push(...ipv6.value.map((address) => ({ address, family: 6 })))
    if (found.length === 0 && ipv4.status === 'rejected') throw ipv4.reason
    return found
  }
}

/** As the system resolves, with its hosts file and search domains: for closed networks, which webhooks may point into. */
export const resolveBySystem: Resolve = (name) => lookup(name, { all: true })
