// A lookup for connections that resolves names itself and only returns allowed addresses.
import type { LookupAddress } from 'node:dns'
import { lookup, Resolver } from 'node:dns/promises'
import type { LookupFunction } from 'node:net'
import { isPublicAddress } from './public-address.ts'

export type Resolve = (name: string) => Promise<LookupAddress[]>

/** Which addresses requests on behalf of customers may reach, and how to resolve names. */
export type Reach = {
  /** Whether connecting to an address is allowed. */
  mayReach(address: string): boolean
  resolve: Resolve
}

export type ReachOptions = {
  /** Whether private and local addresses are allowed too. */
  webhookAllowPrivate: boolean
  dnsResolvers: readonly string[]
}

export function createReach({ webhookAllowPrivate, dnsResolvers }: ReachOptions): Reach {
  return webhookAllowPrivate
    ? { mayReach: () => true, resolve: resolveBySystem }
    : { mayReach: isPublicAddress, resolve: createResolve(dnsResolvers) }
}

/** The host has no allowed address. */
export class AddressRefused extends Error {
  override name = 'AddressRefused'
}

/**
 * For a connection's `lookup` option. It connects to the address that was checked, because a second lookup could return
 * another one. Node doesn't call it if the host is an address; use `hostRefusal` for that.
 */
export function checkedLookup({ mayReach, resolve }: Reach): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (found) => {
        const addresses = found.filter(({ address }) => mayReach(address))
        const [first] = addresses
        if (!first) callback(new AddressRefused(`${hostname} has no public address`), '', 4)
        else if (options.all) callback(null, addresses)
        else callback(null, first.address, first.family)
      },
      (error) => callback(error, '', 4),
    )
  }
}

const questionTimeoutMs = 2_000
const questionTries = 2

/**
 * Queries name servers directly. The system's resolver uses the four threads of Node's pool, so four hosts whose name
 * servers don't respond would block everything else.
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

/** The system's resolver, with its hosts file and search domains: for closed networks with internal webhooks. */
export const resolveBySystem: Resolve = (name) => lookup(name, { all: true })
