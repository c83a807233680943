// Finds the current nameservers of a domain, and queries them.
import { randomInt } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { exchangeOverTcp, exchangeOverUdp, type Server } from '../../dns/packet/exchange.ts'
import { encodeQuestion, flagsOf, hasQuestion, isTruncated, rcodeOf } from '../../dns/packet/message.ts'
import { classIn, flags, rcodes, typeNumbers } from '../../dns/packet/numbers.ts'
import { type DecodedRecord, readRecords } from '../../dns/packet/records.ts'
import { isPublicAddress } from '../../platform/http/public-address.ts'

export type Nameservers = { zone: string; hosts: string[]; servers: { host: string; server: Server }[] }

export type ServersOptions = {
  /** Each is `address[:port]`. If empty, the system's. */
  resolvers: readonly string[]
  /** Whether servers at non-public addresses may be queried. */
  allowPrivate: boolean
  /** The endpoint for the server at an address; for tests. */
  reach?: ((address: string) => Server) | undefined
  /** Our own nameservers, which aren't queried. */
  own: readonly string[]
}

const dnsPort = 53
const maxServers = 4
// Zones are rarely more labels apart.
const maxClimb = 8
const answerTimeoutMs = 1_500
const resendMs = 500

const isAbsence = (error: unknown) => ['ENODATA', 'ENOTFOUND'].includes((error as { code?: string }).code ?? '')

/** The nameservers of the zone that contains a domain; null if the resolvers fail. */
export async function findNameservers(domain: string, options: ServersOptions): Promise<Nameservers | null> {
  const { resolvers, allowPrivate, own, reach = (host) => ({ host, port: dnsPort }) } = options
  const resolver = new Resolver({ timeout: 2_000, tries: 2 })
  if (resolvers.length > 0) resolver.setServers([...resolvers])

  async function addressesOf(host: string): Promise<string[]> {
    for (const find of [() => resolver.resolve4(host), () => resolver.resolve6(host)]) {
      const found = await find().catch(() => [])
      // Addresses in the DNS are untrusted and must not lead into this server's network.
      const usable = found.filter((address) => allowPrivate || isPublicAddress(address))
      if (usable.length > 0) return usable.slice(0, 1)
    }
    return []
  }

  const labels = domain.split('.')
  for (let skip = 0; skip < Math.min(labels.length - 1, maxClimb); skip++) {
    const zone = labels.slice(skip).join('.')
    try {
      const hosts = (await resolver.resolveNs(zone)).map((host) => host.toLowerCase()).sort()
      if (hosts.length === 0) continue
      const foreign = hosts.filter((host) => !own.includes(host)).slice(0, maxServers)
      const servers = await Promise.all(
        foreign.map(async (host) => (await addressesOf(host)).map((address) => ({ host, server: reach(address) }))),
      )
      return { zone, hosts, servers: servers.flat() }
    } catch (error) {
      if (!isAbsence(error)) return null
    }
  }
  return { zone: domain, hosts: [], servers: [] }
}

/** The records that a nameserver returned, or its delegation to other servers; null without a usable answer. */
export async function askServer(
  server: Server,
  name: string,
  type: number,
  signal: AbortSignal,
): Promise<DecodedRecord[] | null> {
  const query = encodeQuestion(name, { id: randomInt(0x10000), type, recursive: false })
  if (!query) return []
  let packet = await exchangeOverUdp(server, query, { timeoutMs: answerTimeoutMs, resendMs, signal })
  if (typeof packet !== 'string' && isTruncated(packet)) {
    packet = await exchangeOverTcp(server, query, { timeoutMs: answerTimeoutMs, signal })
  }
  if (typeof packet === 'string' || isTruncated(packet)) return null
  if (rcodeOf(packet) === rcodes.NXDOMAIN) return []
  if (rcodeOf(packet) !== rcodes.NOERROR || !hasQuestion(packet)) return null
  const authoritative = (flagsOf(packet) & flags.authoritative) !== 0
  try {
    const { records, end } = readRecords(packet, query.length, packet.readUInt16BE(6))
    if (authoritative) return records.filter((record) => record.class === classIn)
    const authority = readRecords(packet, end, packet.readUInt16BE(8)).records
    return authority.filter((record) => record.class === classIn && record.type === typeNumbers.NS)
  } catch {
    return null
  }
}
