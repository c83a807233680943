// Queries the parent zone's servers for a name's DS records.
import type { ParentAnswer } from '../../services/dns/index.ts'
import { agree } from './agreement.ts'
import type { Answer } from './answer.ts'
import { askServers, type Delegation, type DnsAccess, findDelegation } from './delegation.ts'
import { type Bounds, namesOf, type Server } from './lookups.ts'
import { dsReason, undecidedReason, unreachableReason } from './reasons.ts'

type ParentDs = { ds: string[]; ttl: number }

// Limits for the answers of untrusted servers. A parent has one or two records.
const maxDs = 20
const maxCharacters = 300

function readDs(answer: Answer, host: string): ParentDs | 'lame' {
  if (!answer.authoritative) return 'lame'
  const found = answer.answer.filter(({ type, name }) => type === 'DS' && name === host).slice(0, maxDs)
  const ds = [...new Set(found.map(({ data }) => data.slice(0, maxCharacters)))].sort()
  return { ds, ttl: Math.max(0, ...found.map(({ ttl }) => ttl ?? 0)) }
}

/** The DS records of a name on the parent zone's servers. */
export async function queryDs(
  host: string,
  { zone, servers }: { zone: string; servers: readonly Server[] },
  dns: Pick<DnsAccess, 'reach'>,
  bounds: Bounds,
): Promise<ParentAnswer | { fault: string }> {
  const replies = await askServers(
    servers,
    { name: host, type: 'DS', read: (answer) => readDs(answer, host) },
    dns,
    bounds,
  )
  const agreement = agree(replies, ({ ds }) => ds.join())
  if (agreement.kind !== 'agreed') return { fault: dsReason(host, zone, agreement) }
  const all = replies.flatMap(({ value }) => value ?? [])
  return {
    ds: agreement.value.ds,
    everywhere: agreement.value.ds.filter((text) => all.every(({ ds }) => ds.includes(text))),
    anywhere: [...new Set(all.flatMap(({ ds }) => ds))],
    ttl: Math.max(...all.map(({ ttl }) => ttl)),
  }
}

/** Like `askForDs`, from a delegation. */
export function findDs(
  host: string,
  delegation: Exclude<Delegation, { kind: 'undecided' | 'hosted' }>,
  dns: DnsAccess,
  bounds: Bounds,
): Promise<ParentAnswer | { fault: string }> {
  const { zone, servers } =
    delegation.kind === 'delegated' ? { zone: delegation.parent, servers: delegation.parentServers } : delegation
  return queryDs(host, { zone, servers }, dns, bounds)
}

/** Like `askForDs`, from only the name, if the zone above isn't on our servers. */
export async function queryParent(
  host: string,
  dns: DnsAccess,
  bounds: Bounds,
): Promise<ParentAnswer | { fault: string }> {
  const delegation = await findDelegation(host, dns, bounds)
  if (typeof delegation === 'string') return { fault: unreachableReason(delegation) }
  if (delegation.kind === 'undecided') return { fault: undecidedReason(host, delegation.zone, delegation.agreement) }
  if (delegation.kind === 'hosted') return { fault: hostedDsText(host, delegation.zone) }
  return findDs(host, delegation, dns, bounds)
}

export function hostedDsText(host: string, zone: string): string {
  return `${host} is below ${zone}, which uses our nameservers and is not signed. Sign ${zone} first.`
}

/** The first nameserver that doesn't serve all these keys; null if all do. */
export async function findUnserved(
  { name, keys }: { name: string; keys: readonly string[] },
  servers: readonly Server[],
  dns: Pick<DnsAccess, 'reach'>,
  bounds: Bounds,
): Promise<string | null> {
  const read = (answer: Answer) => ({ keys: namesOf(answer.answer, name, 'DNSKEY') })
  const replies = await askServers(servers, { name, type: 'DNSKEY', read }, dns, bounds)
  const without = replies.find(({ value }) => value === null || !keys.every((key) => value.keys.includes(key)))
  return without?.server ?? null
}
