// Checks one domain: queries public DNS and evaluates the answers, without changing anything.
import { foreignDs, foreignText } from '../../services/dns/index.ts'
import type { CheckResult, Claim } from '../../services/verification/index.ts'
import { type Delegation, type DnsAccess, findDelegation } from './delegation.ts'
import { type Bounds, isWithin } from './lookups.ts'
import { findDs } from './parent.ts'
import { missingReason, undecidedReason, unreachableReason } from './reasons.ts'
import { findTexts } from './texts.ts'

// Limits for storing and showing the answers of untrusted servers.
const maxShown = 20
const maxShownCharacters = 300

export function truncate(values: readonly string[]): string[] {
  return values.slice(0, maxShown).map((value) => value.slice(0, maxShownCharacters))
}

export function isOurSet(seen: readonly string[], ours: readonly string[]): boolean {
  return seen.length === ours.length && ours.every((name) => seen.includes(name))
}

/**
 * Whether a delegation to the claim's pair proves it: only if no other account ever had that pair for the name or one
 * above it, and never below a name that another account has proved. A wildcard is proved with its host.
 */
export function ownsDelegation(claim: Claim): boolean {
  if (claim.name !== claim.host) return claim.nearestOwned?.own === true && claim.nearestOwned.name === claim.host
  return claim.verified || (claim.exclusive && claim.nearestOwned?.own !== false)
}

/** In a zone on our nameservers, the closest proved name within it decides. */
function ownsHosted(claim: Claim, zone: string): boolean {
  return claim.nearestOwned?.own === true && isWithin(claim.nearestOwned.name, zone)
}

/** Warns of DS records that another provider left at the parent, which make every answer invalid. */
async function foreignDsNote(
  { host, keys }: Claim,
  delegation: Extract<Delegation, { kind: 'delegated' }>,
  dns: DnsAccess,
  bounds: Bounds,
): Promise<string | null> {
  const found = await findDs(host, delegation, dns, bounds)
  if ('fault' in found) return null
  const foreign = foreignDs(host, keys, found.ds)
  return foreign.length === 0 || foreign.length < found.ds.length ? null : `${foreignText(host, foreign)}.`
}

export async function checkClaim(claim: Claim, dns: DnsAccess, bounds: Bounds): Promise<CheckResult> {
  const { host, txtValue } = claim
  const ours = claim.nameservers
  const nothing = { nameservers: [], txt: [] }
  const delegation = await findDelegation(host, dns, bounds)
  if (typeof delegation === 'string') {
    return { outcome: 'unknown', observed: nothing, reason: unreachableReason(delegation) }
  }
  if (delegation.kind === 'undecided') {
    const { zone, agreement } = delegation
    const seen = agreement.kind === 'divided' ? agreement.values.flatMap(({ nameservers }) => nameservers) : []
    const observed = { nameservers: truncate([...new Set(seen)].sort()), txt: [], asked: truncate(delegation.asked) }
    return { outcome: 'unknown', observed, reason: undecidedReason(host, zone, agreement) }
  }
  const nameservers = truncate(delegation.nameservers)
  const asked = truncate(delegation.asked)
  const byPair = delegation.kind === 'delegated' && isOurSet(delegation.nameservers, ours) && ownsDelegation(claim)
  if (byPair || (delegation.kind === 'hosted' && ownsHosted(claim, delegation.zone))) {
    const observed = { nameservers, txt: [], asked }
    const note = delegation.kind === 'delegated' ? await foreignDsNote(claim, delegation, dns, bounds) : null
    return { outcome: 'proved', method: 'nameservers', observed, byPair: byPair && claim.name === host, note }
  }

  const servers = delegation.kind === 'hosted' ? [] : delegation.servers
  const txtName = `_berth.${host}`
  const texts = servers.length === 0 ? null : await findTexts({ name: txtName, value: txtValue }, servers, dns, bounds)
  const observed = { nameservers, txt: truncate(texts?.seen ?? []), asked }
  if (texts?.agreement.kind === 'agreed' && texts.agreement.value.values.includes(txtValue)) {
    return { outcome: 'proved', method: 'txt', observed }
  }
  const expected = { nameservers: ours, pool: dns.nameservers, txt: { name: txtName, value: txtValue } }
  const reason = missingReason(claim, delegation, texts?.agreement ?? null, expected)
  // The delegation that proved the domain is gone, which is a miss even if the TXT record is unknown.
  const isMiss = texts === null || texts.agreement.kind === 'agreed' || claim.method === 'nameservers'
  return { outcome: isMiss ? 'missed' : 'unknown', observed, reason }
}
