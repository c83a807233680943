// Why a domain is not verified, in sentences that users without DNS knowledge can act upon.
import { getDomain } from 'tldts'
import { sharedAdvice, sharedText, type TxtRecord, txtAdvice } from '../../services/domains/claim-reasons.ts'
import type { Claim } from '../../services/verification/checks.ts'
import type { Agreement } from './agreement.ts'
import type { Failure } from './ask.ts'
import type { Cut, Delegation } from './delegation.ts'
import type { Texts } from './texts.ts'

/** What would be a proof, and all nameservers of the platform. */
type Expected = { nameservers: readonly string[]; pool: readonly string[]; txt: TxtRecord }

const troubleTexts: Record<Failure, string> = {
  timeout: 'did not answer in time',
  unreachable: 'could not be reached',
  malformed: 'sent something that is no answer',
  servfail: 'failed (SERVFAIL)',
  refused: 'refused to answer',
  lame: 'did not have the zone',
  unresolved: 'had no address that could be asked',
}

const again = 'This is no verdict on the domain; it is asked again by itself.'

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
  return `The resolvers could not say where the domain's zone is: the last one ${troubleTexts[failure]}. ${again}`
}

function cutText(cut: Cut): string {
  return cut.owner === null ? 'that it is not delegated' : listed(cut.nameservers)
}

export function undecidedReason(host: string, zone: string, agreement: Exclude<Agreement<Cut>, { kind: 'agreed' }>) {
  if (agreement.kind === 'silent') {
    const why = failures(agreement.failures)
    return `Too few nameservers of ${zoneText(zone)} could be asked for ${host}: ${why}. ${again}`
  }
  const said = agreement.values.map(cutText).join(', others ')
  const contradiction = `The nameservers of ${zoneText(zone)} contradict each other about ${host}: some say ${said}.`
  return `${contradiction} A change takes a while to reach all of them. ${again}`
}

/** Why the DS records of a name are not known. */
export function dsReason(
  host: string,
  zone: string,
  agreement: Exclude<Agreement<object>, { kind: 'agreed' }>,
): string {
  if (agreement.kind === 'silent') {
    const why = failures(agreement.failures)
    return `Too few nameservers of ${zoneText(zone)} could be asked for the DS records of ${host}: ${why}. They are asked again by themselves.`
  }
  return `The nameservers of ${zoneText(zone)} do not show the same DS records for ${host} yet. They are asked again by themselves.`
}

function textsText(texts: Agreement<Texts>, { name: txtName, value: txtValue }: TxtRecord): string {
  if (texts.kind === 'silent') {
    return `The nameservers could not be asked for the TXT record ${txtName}: ${failures(texts.failures)}.`
  }
  if (texts.kind === 'divided') return `Only some of the nameservers show the TXT record ${txtName} with its value yet.`
  const { alias, values } = texts.value
  if (alias) {
    const advice = 'the TXT record must be at the name itself'
    return `${txtName} is an alias (CNAME) of ${alias}, which is not followed: ${advice}.`
  }
  if (values.length === 0) return `There is no TXT record ${txtName}.`
  return `The TXT record ${txtName} has another value than ${txtValue}.`
}

function delegatedText(host: string, parent: string, seen: readonly string[], expected: Expected): string {
  const { nameservers, pool } = expected
  if (seen.every((name) => pool.includes(name)) && seen.some((name) => !nameservers.includes(name))) {
    const where = `${zoneText(parent)} delegates ${host} to ${listed(seen)}, which are not those of this domain`
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
    ...(foreign.length > 0 ? [`also to ${listed(foreign)}, whose owner could answer for it too`] : []),
  ]
  const ours = seen.filter((name) => nameservers.includes(name))
  const advice = `At your registrar, set its nameservers to exactly ${listed(nameservers)}`
  return `${zoneText(parent)} delegates ${host} to ${listed(ours)}, but ${faults.join(' and ')}. ${advice}`
}

/** Neither the delegation nor the TXT record is a proof. `texts` is null if a TXT record cannot be one. */
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
    const owned = `${claim.nearestOwned?.name} belongs to another account, so nameservers do not tell whose ${host} is.`
    const why = isShared ? sharedText(host, expected.pool, claim) : owned
    const where = delegation.servers.length > 0 ? 'Where its DNS is now' : 'At a DNS provider elsewhere'
    return `${why} ${sharedAdvice(where, expected.txt)}${found}`
  }
  const unserved = `${host} is not answered until it is verified, because another account has or had a claim to it too.`
  const note = claim.served || claim.verified || claim.name !== host ? '' : ` ${unserved}`
  if (delegation.kind === 'inside') {
    const unknown = delegation.exists ? '' : `${zoneText(delegation.zone)} has no name ${host}. `
    if (!delegation.exists && getDomain(host, { allowPrivateDomains: true }) === host) {
      const advice = `Register it, and set its nameservers to ${listed(expected.nameservers)}`
      return `${unknown}It is not registered, or not published yet. ${advice}.${note}`
    }
    const where = `${host} is a part of the zone ${delegation.zone} on ${listed(delegation.nameservers)}`
    return `${unknown}${where}. There, ${txt}.${found}${note}`
  }
  const { nameservers, parent } = delegation
  const same = nameservers.every((name) => expected.nameservers.includes(name))
  if (same && nameservers.length === expected.nameservers.length) return hostedText(claim, host)
  return `${delegatedText(host, parent, nameservers, expected)}; or ${txt}.${found}${note}`
}

/** A name in a zone on our own nameservers; it belongs to the owner of the zone. */
function hostedText({ name, attachedAbove, nearestOwned }: Claim, zone: string): string {
  if (nearestOwned?.own === false) return `${nearestOwned.name} belongs to another account, and ${name} with it.`
  if (attachedAbove.includes(zone)) {
    return `${name} is a part of ${zone}, which is on the nameservers here; it is verified as soon as ${zone} is.`
  }
  return `${name} is a part of ${zone}, which is on the nameservers here but not in this account. Attach ${zone} first.`
}
