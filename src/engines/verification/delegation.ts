// Finds a name's nameservers by querying the zones above it, cut by cut, but never our own servers.

import { rcodes } from '../../dns/packet/numbers.ts'
import { type Agreement, agree, type Reply } from './agreement.ts'
import type { Answer, Type } from './answer.ts'
import { ask, type Endpoint, type Failure } from './ask.ts'
import { type Bounds, isWithin, type Lookups, namesOf, type Server, type Zone } from './lookups.ts'

export type DnsAccess = {
  lookups: Lookups
  /** The endpoint for the server at an address; tests run all servers on one machine. */
  reach(address: string): Endpoint
  /** The whole pool of our own nameservers. */
  nameservers: readonly string[]
}

/** Where a name is in the DNS. */
export type Delegation = { /** The servers that reported it. */ asked: string[] } & Where

type Where =
  /** The zone above delegates it. */
  | { kind: 'delegated'; parent: string; parentServers: Server[]; nameservers: string[]; servers: Server[] }
  /** It is part of a zone on other servers. `exists`: the zone has the name. */
  | { kind: 'inside'; zone: string; nameservers: string[]; servers: Server[]; exists: boolean }
  /** It is part of a zone that is only on our servers. */
  | { kind: 'hosted'; zone: string; nameservers: string[] }
  | { kind: 'undecided'; zone: string; agreement: Exclude<Agreement<Cut>, { kind: 'agreed' }> }

/** The zone cut between a zone and a name below it, as reported by one server. `owner` is null if there is none. */
export type Cut = { owner: string | null; nameservers: string[]; exists: boolean }

// A name with a hundred labels may have as many zones above it, but only an attacker creates one.
const maxCuts = 12

export type ServerQuestion<T> = { name: string; type: Type; read(answer: Answer): T | Failure }

/** Sends the same query to all servers, trying each one's next address if one fails. */
export function askServers<T extends object>(
  servers: readonly Server[],
  { name, type, read }: ServerQuestion<T>,
  { reach }: Pick<DnsAccess, 'reach'>,
  bounds: Bounds,
): Promise<Reply<T>[]> {
  return Promise.all(
    servers.map(async (server): Promise<Reply<T>> => {
      let failure: Failure = 'unresolved'
      for (const address of server.addresses) {
        const answer = await ask(reach(address), name, type, bounds)
        const value = typeof answer === 'string' ? answer : read(answer)
        if (typeof value !== 'string') return { server: server.name, value, failure: null }
        failure = value
      }
      return { server: server.name, value: null, failure }
    }),
  )
}

function readCut(answer: Answer, host: string, zone: string): Cut | Failure {
  if (answer.authoritative) {
    // The server also has the child zone and answers for it.
    const nameservers = namesOf(answer.answer, host, 'NS')
    if (nameservers.length > 0) return { owner: host, nameservers, exists: true }
  }
  const below = answer.authority.find(
    ({ type, name }) => type === 'NS' && name !== zone && isWithin(name, zone) && isWithin(host, name),
  )
  if (below && answer.code === rcodes.NOERROR) {
    return { owner: below.name, nameservers: namesOf(answer.authority, below.name, 'NS'), exists: true }
  }
  // Neither authoritative nor a referral: the server doesn't have the zone it is listed for.
  if (!answer.authoritative) return 'lame'
  return { owner: null, nameservers: [], exists: answer.code !== rcodes.NXDOMAIN }
}

/**
 * Excludes our own servers, by name and by address. They answer with what the claiming account entered here, which
 * proves nothing.
 */
async function foreignServers(nameservers: string[], { lookups, ...our }: DnsAccess, bounds: Bounds) {
  const foreign = nameservers.filter((name) => !our.nameservers.includes(name))
  if (foreign.length === 0) return []
  const [servers, own] = await Promise.all([
    lookups.serversOf(foreign, bounds),
    lookups.allAddressesOf(our.nameservers, bounds),
  ])
  // If our own addresses are unknown, we can't distinguish other servers from ours.
  if (typeof own === 'string') return servers.map(({ name }) => ({ name, addresses: [] }))
  return servers.filter(({ addresses }) => !addresses.some((address) => own.includes(address)))
}

export async function findDelegation(host: string, dns: DnsAccess, bounds: Bounds): Promise<Delegation | Failure> {
  const above = host.slice(host.indexOf('.') + 1)
  let zone: Zone | Failure = await dns.lookups.zoneOf(above, bounds)
  for (let cuts = 0; cuts < maxCuts; cuts++) {
    if (typeof zone === 'string') return zone
    const { name, nameservers }: Zone = zone
    const servers = await foreignServers(nameservers, dns, bounds)
    if (servers.length === 0) return { kind: 'hosted', zone: name, nameservers, asked: [] }
    const replies = await askServers(
      servers,
      { name: host, type: 'NS', read: (answer) => readCut(answer, host, name) },
      dns,
      bounds,
    )
    const asked = replies.filter(({ failure }) => failure === null).map(({ server }) => server)
    const agreement = agree(replies, (cut) => JSON.stringify(cut))
    if (agreement.kind !== 'agreed') return { kind: 'undecided', zone: name, agreement, asked }
    const cut = agreement.value
    if (cut.owner === null) return { kind: 'inside', zone: name, nameservers, servers, exists: cut.exists, asked }
    if (cut.owner === host) {
      const own = await foreignServers(cut.nameservers, dns, bounds)
      const { nameservers } = cut
      return { kind: 'delegated', parent: name, parentServers: servers, nameservers, servers: own, asked }
    }
    zone = { name: cut.owner, nameservers: cut.nameservers }
  }
  return 'malformed'
}
