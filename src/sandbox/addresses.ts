// Decides which hosts a sandboxed command may reach, and which of their addresses never.
import { promises as dns, type LookupAddress } from 'node:dns'
import { BlockList, isIP } from 'node:net'
import type { Egress } from './command.ts'

// Everything that leads to this machine, its network or its cloud's metadata service. Ranges for documentation are not
// here: nothing of ours listens there, and closed test networks use them for their registry mirror.
const inward = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const)
  inward.addSubnet(network, prefix, 'ipv4')
for (const [network, prefix] of [
  ['::', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const)
  inward.addSubnet(network, prefix, 'ipv6')

/** Private, loopback, link-local, multicast or a disguise of such an address; BlockList unwraps ::ffff:a.b.c.d. */
export function leadsInward(address: string): boolean {
  const family = isIP(address)
  return family === 0 || inward.check(address, family === 4 ? 'ipv4' : 'ipv6')
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

const isLoopback = (host: string) => host === 'localhost' || (isIP(host) !== 0 && leadsInward(host))

const resolve = (host: string) => dns.lookup(host, { all: true })

/** Answers where a connection goes: the caller connects to these addresses, for the name may change meanwhile. */
export function egressRules(egress: Egress, lookup = resolve): (target: Target) => Promise<Destination> {
  const rules = new Map<string, { inwardToo: boolean }>()
  const add = (text: string, inwardToo: boolean) => {
    const ports = /\]$|^[^:]*$/.test(text) ? [80, 443] : [undefined]
    for (const port of ports) {
      const target = readTarget(text, port)
      if (target === undefined) throw new TypeError(`${text} is no host:port.`)
      rules.set(`${target.host} ${target.port}`, { inwardToo: inwardToo || isLoopback(target.host) })
    }
  }
  for (const text of egress.allow) add(text, false)
  for (const text of egress.allowPrivate ?? []) add(text, true)
  return async ({ host, port }) => {
    const rule = rules.get(`${host} ${port}`)
    if (rule === undefined) return { refused: `${host}:${port} is not on the list of hosts this sandbox may reach.` }
    const found = await lookup(host)
    const addresses = rule.inwardToo ? found : found.filter(({ address }) => !leadsInward(address))
    if (addresses.length === 0) return { refused: `${host} has a private address, which this sandbox may not reach.` }
    return { addresses }
  }
}

/** Whether the command must use the proxy for loopback names too, because one is listed. */
export function reachesLoopback(egress: Egress): boolean {
  return [...egress.allow, ...(egress.allowPrivate ?? [])].some((text) => isLoopback(readTarget(text, 80)?.host ?? ''))
}
