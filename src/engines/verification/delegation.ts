// Finds out, from outside, whose servers a name is on: asked of the zones above it, cut by cut, never of our own.
import { type Agreement, agree, type Reply } from './agreement.ts'
import { ask, type Endpoint, type Trouble } from './ask.ts'
import { type Bounds, isWithin, type Lookups, namesOf, type Server, type Zone } from './lookups.ts'
import { type Answer, codes, type Type } from './message.ts'

export type Surroundings = {
  lookups: Lookups
  /** Where the server at an address is asked; tests put a whole world on one machine. */
  reach(address: string): Endpoint
  /** The service's own nameservers, in lower case. */
  nameservers: readonly string[]
}

/** Where a name stands in the DNS. */
export type Delegation =
  /** The zone above delegates it. */
  | { kind: 'delegated'; parent: string; nameservers: string[]; servers: Server[] }
  /** It is a part of a zone on other servers; `exists` tells whether that zone knows it. */
  | { kind: 'inside'; zone: string; nameservers: string[]; servers: Server[]; exists: boolean }
  /** It is a part of a zone that only our own servers have. */
  | { kind: 'hosted'; zone: string; nameservers: string[] }
  | { kind: 'undecided'; zone: string; agreement: Exclude<Agreement<Cut>, { kind: 'agreed' }> }

/** What one server of a zone says about a name below it: where the zone ends on the way there, if it does. */
export type Cut = { owner: string | null; nameservers: string[]; exists: boolean }

// A name of a hundred labels may have as many zones above it; nobody but an attacker does.
const highestCuts = 12

/** Asks all of them the same, each at its next address if one does not answer. */
export function askServers<T extends object>(
  servers: readonly Server[],
  name: string,
  type: Type,
  { reach }: Surroundings,
  bounds: Bounds,
  read: (answer: Answer) => T | Trouble,
): Promise<Reply<T>[]> {
  return Promise.all(
    servers.map(async (server): Promise<Reply<T>> => {
      let trouble: Trouble = 'unresolved'
      for (const address of server.addresses) {
        const answer = await ask(reach(address), name, type, bounds)
        const value = typeof answer === 'string' ? answer : read(answer)
        if (typeof value !== 'string') return { server: server.name, value, trouble: null }
        trouble = value
      }
      return { server: server.name, value: null, trouble }
    }),
  )
}

function readCut(answer: Answer, host: string, zone: string): Cut | Trouble {
  if (answer.authoritative) {
    // A server that has the child zone too answers for it.
    const nameservers = namesOf(answer.answer, host, 'NS')
    if (nameservers.length > 0) return { owner: host, nameservers, exists: true }
  }
  const below = answer.authority.find(
    ({ type, name }) => type === 'NS' && name !== zone && isWithin(name, zone) && isWithin(host, name),
  )
  if (below && answer.code === codes.noError) {
    return { owner: below.name, nameservers: namesOf(answer.authority, below.name, 'NS'), exists: true }
  }
  // Neither its zone nor a way to another: a server that does not have what it is listed for.
  if (!answer.authoritative) return 'lame'
  return { owner: null, nameservers: [], exists: answer.code !== codes.noSuchName }
}

/**
 * Our own servers are left out wherever they appear, by name and by address. What they say about a name is what the
 * account that claims it wrote here, so it proves nothing.
 */
async function foreignServers(nameservers: string[], { lookups, ...our }: Surroundings, bounds: Bounds) {
  const foreign = nameservers.filter((name) => !our.nameservers.includes(name))
  if (foreign.length === 0) return []
  const [servers, own] = await Promise.all([
    lookups.serversOf(foreign, bounds),
    lookups.allAddressesOf(our.nameservers, bounds),
  ])
  // Not knowing where our own are, nobody else can be told from them.
  if (typeof own === 'string') return servers.map(({ name }) => ({ name, addresses: [] }))
  return servers.filter(({ addresses }) => !addresses.some((address) => own.includes(address)))
}

export async function findDelegation(
  host: string,
  surroundings: Surroundings,
  bounds: Bounds,
): Promise<Delegation | Trouble> {
  const above = host.slice(host.indexOf('.') + 1)
  let zone: Zone | Trouble = await surroundings.lookups.zoneOf(above, bounds)
  for (let cuts = 0; cuts < highestCuts; cuts++) {
    if (typeof zone === 'string') return zone
    const { name, nameservers }: Zone = zone
    const servers = await foreignServers(nameservers, surroundings, bounds)
    if (servers.length === 0) return { kind: 'hosted', zone: name, nameservers }
    const replies = await askServers(servers, host, 'NS', surroundings, bounds, (answer) => readCut(answer, host, name))
    const agreement = agree(replies, (cut) => JSON.stringify(cut))
    if (agreement.kind !== 'agreed') return { kind: 'undecided', zone: name, agreement }
    const cut = agreement.value
    if (cut.owner === null) return { kind: 'inside', zone: name, nameservers, servers, exists: cut.exists }
    if (cut.owner === host) {
      const servers = await foreignServers(cut.nameservers, surroundings, bounds)
      return { kind: 'delegated', parent: name, nameservers: cut.nameservers, servers }
    }
    zone = { name: cut.owner, nameservers: cut.nameservers }
  }
  return 'malformed'
}
