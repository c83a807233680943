// Checks names that don't exist on the internet: in development, `.test` and `.localhost` use our own nameservers.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../../config.ts'
import { listenAddress, reachableAddress } from '../../dns/listen-address.ts'
import { sharedText } from '../../services/domains/index.ts'
import type { CheckResult, Claim } from '../../services/verification/index.ts'
import { ask, type Endpoint } from './ask.ts'
import { isOurSet, ownsDelegation, truncate } from './check.ts'
import { type Bounds, namesOf } from './lookups.ts'
import { listed } from './reasons.ts'

const topLevels = new Set(['test', 'localhost'])
// A domain is checked as soon as it is attached, slightly before its zone reaches the nameservers.
const settleMs = 2_000
const pauseMs = 50

export function isDevelopmentName({ production }: Config, host: string): boolean {
  return !production && topLevels.has(host.slice(host.lastIndexOf('.') + 1))
}

async function nameserversAt(endpoint: Endpoint, host: string, bounds: Bounds): Promise<string[] | null> {
  const answer = await ask(endpoint, host, 'NS', bounds)
  return typeof answer !== 'string' && answer.authoritative ? namesOf(answer.answer, host, 'NS') : null
}

/** For a name that others have claimed too, our own nameservers serve nobody's records and prove nothing. */
function disputedReason(claim: Claim, { nameservers: pool }: Config): string | null {
  const { name, host, verified } = claim
  if (name !== host || verified || (claim.exclusive && claim.served)) return null
  const served = `We do not answer ${host}, because another account has added it or a related name, now or in the past.`
  const why = claim.exclusive ? served : sharedText(host, pool, claim)
  return `${why} The operator can resolve this: POST /api/operator/domains/${host}/assign.`
}

export async function checkDevelopmentName(claim: Claim, config: Config, bounds: Bounds): Promise<CheckResult> {
  const { host, nameservers: ours } = claim
  const disputed = disputedReason(claim, config)
  if (disputed) return { outcome: 'missed', observed: { nameservers: [], txt: [] }, reason: disputed }
  const endpoints = config.nameserverListen
    .map(listenAddress)
    .map(reachableAddress)
    .filter((address) => address !== null)
  const untilMs = performance.now() + settleMs
  let seen: (string[] | null)[] = []
  do {
    if (seen.length > 0) await sleep(pauseMs, undefined, { signal: bounds.signal })
    seen = await Promise.all(endpoints.map((endpoint) => nameserversAt(endpoint, host, bounds)))
  } while (performance.now() < untilMs && !seen.every((names) => names && isOurSet(names, ours)))

  const asked = config.nameserverListen.filter((_, index) => seen[index])
  const observed = { nameservers: truncate([...new Set(seen.flatMap((names) => names ?? []))].sort()), txt: [], asked }
  const where = `Names below .${host.slice(host.lastIndexOf('.') + 1)} are checked at ${listed(config.nameserverListen)}`
  if (seen.length === 0 || seen.some((names) => names === null)) {
    return {
      outcome: 'unknown',
      observed,
      reason: `${where}, where not every Berth nameserver answers for ${host}.`,
    }
  }
  if (!seen.every((names) => isOurSet(names!, ours))) {
    return { outcome: 'missed', observed, reason: `${where}, where ${host} is not delegated to ${listed(ours)}.` }
  }
  if (ownsDelegation(claim)) {
    return { outcome: 'proved', method: 'nameservers', observed, byPair: claim.name === host }
  }
  const who =
    claim.nearestOwned?.own === false ? `${claim.nearestOwned.name} is another account's` : `${host} is not verified`
  return { outcome: 'missed', observed, reason: `${where}, where ${host} is served, but ${who}.` }
}
