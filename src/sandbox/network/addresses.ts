// Decides which hosts and addresses a sandboxed command may reach.
import { promises as dns, type LookupAddress } from 'node:dns'
import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { inwardIpv4 } from '../../platform/http/public-address.ts'
import type { Network } from '../processes/command.ts'

// Documentation ranges are allowed: nothing of the platform listens there, and closed networks use them for registry
// mirrors.
const INWARD_IPV6 = [
  ['::', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const

const inward = new BlockList()
for (const [network, prefix] of inwardIpv4) inward.addSubnet(network, prefix, 'ipv4')
for (const [network, prefix] of INWARD_IPV6) inward.addSubnet(network, prefix, 'ipv6')

const familyOf = (address: string) => (isIP(address) === 4 ? 'ipv4' : 'ipv6')

/** Whether an address is or embeds a private, loopback, link-local or multicast one. BlockList unwraps ::ffff:a.b.c.d. */
export function leadsInward(address: string): boolean {
  return isIP(address) === 0 || inward.check(address, familyOf(address))
}

/** What a sandbox must not reach: the ranges above and all of the platform's addresses, even public ones. */
export type Boundary = {
  /** The platform's addresses outside the ranges. */
  own: string[]
  crosses(address: string): boolean
}

/** Reads the machine's interfaces on each call, because their addresses change. */
export function readBoundary(configured: readonly string[]): Boundary {
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const all = [...interfaces.map(({ address }) => address), ...configured]
  const own = [...new Set(all)].filter((address) => !leadsInward(address))
  const platform = new BlockList()
  for (const address of own) platform.addAddress(address, familyOf(address))
  return { own, crosses: (address) => leadsInward(address) || platform.check(address, familyOf(address)) }
}

export type Target = { host: string; port: number }

export type Destination = { addresses: LookupAddress[] } | { refused: string }

/** Parses `host:port`, with the host in lower case, without brackets or trailing dot. Undefined if invalid. */
export function readTarget(text: string, defaultPort?: number): Target | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([0-9a-f:.]+)\]|([^\s:/@[\]]+))(?::(\d{1,5}))?$/i.exec(text) ?? []
  const port = digits === undefined ? defaultPort : Number(digits)
  const host = (bracketed ?? plain)?.toLowerCase().replace(/\.$/, '')
  if (!host || port === undefined || port < 1 || port > 65_535) return undefined
  return { host, port }
}

const resolve = (host: string) => dns.lookup(host, { all: true })

/** Parses a list of `host:port`. An entry without a port means 80 and 443. */
export function readList(texts: readonly string[]): Target[] {
  return texts.flatMap((text) => {
    const ports = /\]$|^[^:]*$/.test(text) ? [80, 443] : [undefined]
    return ports.map((port) => {
      const target = readTarget(text, port)
      if (target === undefined) throw new TypeError(`${text} is no host:port.`)
      return target
    })
  })
}

export type Lookups = {
  /** For listed hosts, which the operator trusts. */
  listed?: (host: string) => Promise<LookupAddress[]>
  /** For all other hosts. */
  others: (host: string) => Promise<LookupAddress[]>
}

/** Resolves a target to the addresses to connect to. Resolving the name again could give different ones. */
export function egressRules(
  network: Network,
  { crosses }: Boundary,
  { listed = resolve, others }: Lookups,
): (target: Target) => Promise<Destination> {
  const list = new Set(readList(network.private).map(({ host, port }) => `${host} ${port}`))
  return async ({ host, port }) => {
    if (list.has(`${host} ${port}`)) return { addresses: await listed(host) }
    if (network.reach === 'registry') {
      return { refused: `${host}:${port} is not on the list of hosts this sandbox may reach.` }
    }
    const family = isIP(host)
    const found = family === 0 ? await others(host) : [{ address: host, family }]
    const addresses = found.filter(({ address }) => !crosses(address))
    if (addresses.length === 0) return { refused: `${host} has no public address, and this sandbox reaches no other.` }
    return { addresses }
  }
}
