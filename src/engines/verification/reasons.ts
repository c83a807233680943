// Explains why a domain isn't verified, in sentences that users without DNS knowledge can act on.
import { getDomain } from 'tldts'
import { sharedAdvice, sharedText, type TxtRecord, txtAdvice } from '../../services/domains/index.ts'
import type { Claim } from '../../services/verification/index.ts'
import type { Agreement } from './agreement.ts'
import type { Failure } from './ask.ts'
import type { Cut, Delegation } from './delegation.ts'
import type { Texts } from './texts.ts'

/** What would prove the domain, and all of our nameservers. */
type Expected = { nameservers: readonly string[]; pool: readonly string[]; txt: TxtRecord }

const troubleTexts: Record<Failure, string> = {
  timeout: 'did not answer in time',
  unreachable: 'could not be reached',
  malformed: 'sent a malformed answer',
  servfail: 'failed (SERVFAIL)',
  refused: 'refused to answer',
  lame: 'did not serve the zone',
  unresolved: 'had no usable address',
}

const again = 'Your settings may be fine; we will retry automatically.'

export function listed(names: readonly string[]): string {
  const shown = names.length > 6 ? [...names.slice(0, 5), `${names.length - 5} others`] : names
  return shown.length < 2 ? (shown[0] ?? 'nothing') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`
}

function zoneText(zone: string): string {
  return zone === '' ? 'the root zone' : zone.includes('.') ? zone : `.${zone}`
}

function failures(all: readonly Failure[]): string {
  const counts = Map.groupBy(all, (failure) => failure)
  return [...counts].map(([failure, those]) => `${those.length} ${troubleTexts[failure]}`).join(', ')
}

export function unreachableReason(failure: Failure): string {
  return `We could not find the zone of the domain: the last resolver ${troubleTexts[failure]}. ${again}`
}

function cutText(cut: Cut): string {
  return cut.owner === null ? 'that it is not delegated' : listed(cut.nameservers)
}

export function undecidedReason(host: string, zone: string, agreement: Exclude<Agreement<Cut>, { kind: 'agreed' }>) {
  if (agreement.kind === 'silent') {
    const why = failures(agreement.failures)
    return `Too few nameservers of ${zoneText(zone)} answered for ${host}: ${why}. ${again}`
  }
  const said = agreement.values.map(cutText).join(', others ')
  const contradiction = `The nameservers of ${zoneText(zone)} disagree about ${host}: some say ${said}.`
  return `${contradiction} A change takes a while to reach all of them. ${again}`
}

/** Why a name's DS records are unknown. */
export function dsReason(
  host: string,
  zone: string,
  agreement: Exclude<Agreement<object>, { kind: 'agreed' }>,
): string {
  if (agreement.kind === 'silent') {
    const why = failures(agreement.failures)
    return `Too few nameservers of ${zoneText(zone)} answered for the DS records of ${host}: ${why}. We will retry automatically.`
  }
  return `The nameservers of ${zoneText(zone)} do not all show the same DS records for ${host} yet. We will retry automatically.`
}

function textsText(texts: Agreement<Texts>, { name: txtName, value: txtValue }: TxtRecord): string {
  if (texts.kind === 'silent') {
    return `The nameservers did not answer for the TXT record ${txtName}: ${failures(texts.failures)}.`
  }
  if (texts.kind === 'divided')
    return `Only some of the nameservers show the TXT record ${txtName} with its value so far.`
  const { alias, values } = texts.value
  if (alias) {
    const advice = 'the TXT record must be at the name itself'
    return `${txtName} is an alias (CNAME) of ${alias}, which we do not follow: ${advice}.`
  }
  if (values.length === 0) return `There is no TXT record ${txtName}.`
  return `The TXT record ${txtName} does not have the value ${txtValue}.`
}

function delegatedText(host: string, parent: string, seen: readonly string[], expected: Expected): string {
  const { nameservers, pool } = expected
  if (seen.every((name) => pool.includes(name)) && seen.some((name) => !nameservers.includes(name))) {
    const where = `${zoneText(parent)} delegates ${host} to ${listed(seen)}, which are not the nameservers assigned to this domain`
    return `${where}. At your registrar, set its nameservers to exactly ${listed(nameservers)}`
  }
  const foreign = seen.filter((name) => !nameservers.includes(name))
  const missing = nameservers.filter((name) => !seen.includes(name))
  if (foreign.length === seen.length) {
    const advice = `At your registrar, set its nameservers to ${listed(nameservers)}`
    return `${zoneText(parent)} still delegates ${host} to ${listed(seen)}. ${advice}`
  }
  const faults = [
    ...(missing.length > 0 ? [`not to ${listed(missing)}`] : []),
    ...(foreign.length > 0 ? [`also to ${listed(foreign)}, whose owner could also answer for it`] : []),
  ]
  const ours = seen.filter((name) => nameservers.includes(name))
  const advice = `At your registrar, set its nameservers to exactly ${listed(nameservers)}`
  return `${zoneText(parent)} delegates ${host} to ${listed(ours)}, but ${faults.join(' and ')}. ${advice}`
}

/** For domains that neither the delegation nor the TXT record proves. `texts` is null if a TXT record can't. */
export function missingReason(
  claim: Claim,
  delegation: Exclude<Delegation, { kind: 'undecided' }>,
  texts: Agreement<Texts> | null,
  expected: Expected,
): string {
  const { host } = claim
  const txt = txtAdvice(expected.txt)
  const found = texts ? ` ${textsText(texts, expected.txt)}` : ''
  if (delegation.kind === 'hosted') return hostedText(claim, delegation.zone)
  const isShared = claim.name === host && !claim.verified && !claim.exclusive
  if (isShared || claim.nearestOwned?.own === false) {
    const owned = `${claim.nearestOwned?.name} belongs to another account, so nameservers cannot prove who owns ${host}.`
    const why = isShared ? sharedText(host, expected.pool, claim) : owned
    const where = delegation.servers.length > 0 ? 'Where its DNS is now' : 'At another DNS provider'
    return `${why} ${sharedAdvice(where, expected.txt)}${found}`
  }
  const unserved = `We do not answer ${host} until it is verified, because another account has also added it, now or in the past.`
  const note = claim.served || claim.verified || claim.name !== host ? '' : ` ${unserved}`
  if (delegation.kind === 'inside') {
    const unknown = delegation.exists ? '' : `${zoneText(delegation.zone)} has no name ${host}. `
    if (!delegation.exists && getDomain(host, { allowPrivateDomains: true }) === host) {
      const advice = `Register it and set its nameservers to ${listed(expected.nameservers)}`
      return `${unknown}It is not registered, or not published yet. ${advice}.${note}`
    }
    const where = `${host} is part of the zone ${delegation.zone} on ${listed(delegation.nameservers)}`
    return `${unknown}${where}. There, ${txt}.${found}${note}`
  }
  const { nameservers, parent } = delegation
  const same = nameservers.every((name) => expected.nameservers.includes(name))
  if (same && nameservers.length === expected.nameservers.length) return hostedText(claim, host)
  return `${delegatedText(host, parent, nameservers, expected)}; or ${txt}.${found}${note}`
}

/** For names in a zone on our own nameservers, which belong to the zone's owner. */
function hostedText({ name, attachedAbove, nearestOwned }: Claim, zone: string): string {
  if (nearestOwned?.own === false) return `${nearestOwned.name} belongs to another account, and so does ${name}.`
  if (attachedAbove.includes(zone)) {
    return `${name} is part of ${zone}, which uses our nameservers. It is verified as soon as ${zone} is.`
  }
  return `${name} is part of ${zone}, which uses our nameservers but is not in this account. Attach ${zone} first.`
}
