// Queries the resolvers for the zone of a name, its nameservers, and their addresses.
import { randomInt } from 'node:crypto'
import { getServers } from 'node:dns'
import { listenAddress } from '../../dns/listen-address.ts'
import { isPublicAddress } from '../../platform/http/public-address.ts'
import type { Answer, Rr, Type } from './answer.ts'
import { type AskOptions, ask, type Endpoint, type Failure } from './ask.ts'

export type Bounds = Pick<AskOptions, 'signal' | 'deadlineMs'>

/** A nameserver of a zone. Without an address it can't be queried. */
export type Server = { name: string; addresses: string[] }

export type Zone = { name: string; nameservers: string[] }

export type Lookups = {
  /** The zone of a name and its nameservers, according to the resolvers. */
  zoneOf(name: string, bounds: Bounds): Promise<Zone | Failure>
  /** Returns a random selection if there are many. */
  serversOf(nameservers: readonly string[], bounds: Bounds): Promise<Server[]>
  /** All addresses of our own nameservers, cached for a while. */
  allAddressesOf(names: readonly string[], bounds: Bounds): Promise<string[] | Failure>
}

export type LookupOptions = {
  /** Each is `address[:port]`. If empty, the system's. */
  resolvers: readonly string[]
  /** Whether servers at non-public addresses may be queried. */
  allowPrivate: boolean
}

const maxResolvers = 3
// Enough to outvote one wrong and one unreachable server. Top-level domains have up to thirteen.
const maxServers = 5
const maxAddresses = 2
// Zones are rarely many labels apart, and a name with a hundred labels must not cause a hundred queries.
const maxClimb = 8
// A pool of 26 names takes 52 queries, too many for every check.
const cacheMs = 60_000

export function isWithin(name: string, zone: string): boolean {
  return name === zone || zone === '' || name.endsWith(`.${zone}`)
}

export function namesOf(records: readonly Rr[], owner: string, type: Type): string[] {
  const found = records.filter((record) => record.type === type && record.name === owner)
  return [...new Set(found.map(({ data }) => data))].sort()
}

/** Random, so that an attacker can't predict which servers will be queried. */
function sample<T>(all: readonly T[], count: number): T[] {
  return [...all]
    .map((one) => ({ one, at: randomInt(2 ** 32) }))
    .sort((a, b) => a.at - b.at)
    .slice(0, count)
    .map(({ one }) => one)
}

export function createLookups({ resolvers, allowPrivate }: LookupOptions): Lookups {
  const endpoints: Endpoint[] = (resolvers.length > 0 ? resolvers : getServers())
    .slice(0, maxResolvers)
    .map(listenAddress)

  /** Tries the resolvers in turn until one answers. */
  async function resolve(name: string, type: Type, bounds: Bounds): Promise<Answer | Failure> {
    let failure: Failure = 'unreachable'
    for (const endpoint of endpoints) {
      const answer = await ask(endpoint, name, type, { ...bounds, recursive: true })
      if (typeof answer !== 'string') return answer
      failure = answer
    }
    return failure
  }

  async function nameserversOf(zone: string, bounds: Bounds): Promise<string[] | Failure> {
    const answer = await resolve(zone, 'NS', bounds)
    if (typeof answer === 'string') return answer
    const nameservers = namesOf(answer.answer, zone, 'NS')
    return nameservers.length > 0 ? nameservers : 'malformed'
  }

  async function addressesOf(name: string, type: 'A' | 'AAAA', bounds: Bounds): Promise<string[] | Failure> {
    const answer = await resolve(name, type, bounds)
    if (typeof answer === 'string') return answer
    return answer.answer.filter((record) => record.type === type).map(({ data }) => data)
  }

  async function serverOf(name: string, bounds: Bounds): Promise<Server> {
    for (const type of ['A', 'AAAA'] as const) {
      const found = await addressesOf(name, type, bounds)
      if (typeof found === 'string') continue
      // Addresses in the DNS are untrusted and must not lead into this server's network.
      const usable = found.filter((address) => allowPrivate || isPublicAddress(address))
      if (usable.length > 0) return { name, addresses: sample(usable, maxAddresses) }
    }
    return { name, addresses: [] }
  }

  const ownAddresses = new Map<string, { addresses: string[]; untilMs: number }>()

  return {
    async zoneOf(name, bounds) {
      const labels = name.split('.')
      let failure: Failure = 'servfail'
      for (let skip = 0; skip < labels.length && skip < maxClimb; skip++) {
        // The last attempt is the top-level domain, which every resolver knows.
        const candidate = labels.slice(skip === maxClimb - 1 ? -1 : skip).join('.')
        const answer = await resolve(candidate, 'SOA', bounds)
        if (typeof answer === 'string') {
          failure = answer
          // Without a resolver, continuing is pointless. If a zone's servers are broken, the zone above may work.
          if (answer === 'unreachable') return answer
          continue
        }
        const soa = [...answer.answer, ...answer.authority].find(({ type }) => type === 'SOA')
        if (!soa || !isWithin(candidate, soa.name)) continue
        const nameservers = await nameserversOf(soa.name, bounds)
        if (typeof nameservers !== 'string') return { name: soa.name, nameservers }
        failure = nameservers
      }
      return failure
    },
    serversOf(nameservers, bounds) {
      return Promise.all(sample(nameservers, maxServers).map((name) => serverOf(name, bounds)))
    },
    async allAddressesOf(names, bounds) {
      const key = names.join(' ')
      const cached = ownAddresses.get(key)
      if (cached && cached.untilMs > performance.now()) return cached.addresses
      const queries = names.flatMap((name) => [addressesOf(name, 'A', bounds), addressesOf(name, 'AAAA', bounds)])
      const found = await Promise.all(queries)
      const failure = found.find((one) => typeof one === 'string')
      if (failure !== undefined) return failure
      const addresses = found.flat() as string[]
      ownAddresses.set(key, { addresses, untilMs: performance.now() + cacheMs })
      return addresses
    },
  }
}
