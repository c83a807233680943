// Decides which hosts a sandboxed command may reach, and which of their addresses never.
import { promises as dns, type LookupAddress } from 'node:dns'
import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Network } from './command.ts'

/**
 * Everything that leads to this machine, its network or its cloud's metadata service: for the proxy, the resolver and
 * the rules of a namespace. Ranges for documentation are not here: nothing of ours listens there, and closed test
 * networks use them for their registry mirror.
 */
export const INWARD_IPV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Where Azure's machines find the one they run on, although the address looks public.
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const

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
for (const [network, prefix] of INWARD_IPV4) inward.addSubnet(network, prefix, 'ipv4')
for (const [network, prefix] of INWARD_IPV6) inward.addSubnet(network, prefix, 'ipv6')

const familyOf = (address: string) => (isIP(address) === 4 ? 'ipv4' : 'ipv6')

/** Private, loopback, link-local, multicast or a disguise of such an address; BlockList unwraps ::ffff:a.b.c.d. */
export function leadsInward(address: string): boolean {
  return isIP(address) === 0 || inward.check(address, familyOf(address))
}

/** What a sandbox may not reach: the ranges above and every address of the platform, public as these may be. */
export type Boundary = {
  /** Addresses of the platform that are in none of the ranges. */
  own: string[]
  crosses(address: string): boolean
}

/** Reads the machine's interfaces anew, for addresses come and go. */
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

/** The host of a `host:port`, lower case, without brackets or final dot; undefined when it is none. */
export function readTarget(text: string, defaultPort?: number): Target | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([0-9a-f:.]+)\]|([^\s:/@[\]]+))(?::(\d{1,5}))?$/i.exec(text) ?? []
  const port = digits === undefined ? defaultPort : Number(digits)
  const host = (bracketed ?? plain)?.toLowerCase().replace(/\.$/, '')
  if (!host || port === undefined || port < 1 || port > 65_535) return undefined
  return { host, port }
}

const resolve = (host: string) => dns.lookup(host, { all: true })

/** The `host:port` of a list; one without a port stands for 80 and 443. */
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
  /** For listed hosts, which whoever runs Berth chose. */
  listed?: (host: string) => Promise<LookupAddress[]>
  /** For all others. */
  others: (host: string) => Promise<LookupAddress[]>
}

/** Answers where a connection goes: the caller connects to these addresses, for the name may change meanwhile. */
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
