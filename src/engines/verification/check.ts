// One check of one domain: asks the DNS from outside and weighs what it says. It changes nothing.
import type { CheckResult, Claim } from '../../services/domain-checks.ts'
import { findDelegation, type Surroundings } from './delegation.ts'
import { type Bounds, isWithin } from './lookups.ts'
import { missingReason, undecidedReason, unreachableReason } from './reasons.ts'
import { findTexts } from './texts.ts'

// What hostile servers say is stored and shown only so far.
const highestShown = 20
const highestShownCharacters = 300

export function shown(values: readonly string[]): string[] {
  return values.slice(0, highestShown).map((value) => value.slice(0, highestShownCharacters))
}

export function isOurSet(seen: readonly string[], ours: readonly string[]): boolean {
  return seen.length === ours.length && ours.every((name) => seen.includes(name))
}

/**
 * Whether a delegation to us is this account's. It only says that the name is on this platform, so it counts for the
 * claim that the nameservers serve, and never below a name that another account has proved.
 */
export function ownsDelegation(claim: Claim): boolean {
  if (claim.name !== claim.host) return claim.nearestOwned?.own === true && claim.nearestOwned.name === claim.host
  return claim.verified || (claim.served && claim.nearestOwned?.own !== false)
}

/** Within a zone on our nameservers, the closest name that somebody has proved decides, if it is in that zone. */
function ownsHosted(claim: Claim, zone: string): boolean {
  return claim.nearestOwned?.own === true && isWithin(claim.nearestOwned.name, zone)
}

export async function checkClaim(claim: Claim, surroundings: Surroundings, bounds: Bounds): Promise<CheckResult> {
  const { host, txtValue } = claim
  const ours = surroundings.nameservers
  const nothing = { nameservers: [], txt: [] }
  const delegation = await findDelegation(host, surroundings, bounds)
  if (typeof delegation === 'string') {
    return { outcome: 'unknown', observed: nothing, reason: unreachableReason(delegation) }
  }
  if (delegation.kind === 'undecided') {
    const { zone, agreement } = delegation
    const seen = agreement.kind === 'divided' ? agreement.values.flatMap(({ nameservers }) => nameservers) : []
    const observed = { nameservers: shown([...new Set(seen)].sort()), txt: [] }
    return { outcome: 'unknown', observed, reason: undecidedReason(host, zone, agreement) }
  }
  const nameservers = shown(delegation.nameservers)
  const proved =
    delegation.kind === 'hosted'
      ? ownsHosted(claim, delegation.zone)
      : delegation.kind === 'delegated' && isOurSet(delegation.nameservers, ours) && ownsDelegation(claim)
  if (proved) return { outcome: 'proved', method: 'nameservers', observed: { nameservers, txt: [] } }

  const servers = delegation.kind === 'hosted' ? [] : delegation.servers
  const txtName = `_berth.${host}`
  const texts = servers.length === 0 ? null : await findTexts(txtName, txtValue, servers, surroundings, bounds)
  const observed = { nameservers, txt: shown(texts?.seen ?? []) }
  if (texts?.agreement.kind === 'agreed' && texts.agreement.value.values.includes(txtValue)) {
    return { outcome: 'proved', method: 'txt', observed }
  }
  const expected = { nameservers: ours, txtName, txtValue }
  const reason = missingReason(claim, delegation, texts?.agreement ?? null, expected)
  // The delegation that proved it is gone; whether there is a TXT record instead need not be known for that.
  const isMiss = texts === null || texts.agreement.kind === 'agreed' || claim.method === 'nameservers'
  return { outcome: isMiss ? 'missed' : 'unknown', observed, reason }
}
