// Explains what happens next with the signing of a zone, or what its owner must do.
import type { DnssecState } from './dnssec-states.ts'

export type Situation = {
  name: string
  enabled: boolean
  verified: boolean
  state: DnssecState
  /** The parent shows only DS records of other providers. */
  foreign: boolean
  /** The parent shows a DS of a key of the zone. */
  matches: boolean
  /** The progress of a key rollover; null without one. */
  rollover: 'published' | 'announced' | 'seen' | null
  /** DS records of other providers that the parent shows too. */
  surplus: readonly string[]
  /** Another provider signs the zone too. */
  isShared: boolean
  /** The parent zone, if it is hosted here. */
  hostedParent: string | null
  fault: string | null
  nextCheckAt: Date | null
}

export function foreignText(name: string, ds: readonly string[]): string {
  const which = ds.map((text) => text.split(' ')[0]).join(', ')
  return (
    `The registrar of ${name} still has a DS record of another DNS provider (key tag ${which}). Because of it, validating resolvers ` +
    `reject every answer for ${name}, whether the zone is signed here or not. Remove it at the registrar`
  )
}

/** Explains how the parent gets the DS: we add it if the parent is hosted here. */
function dsText({ name, isShared, hostedParent }: Situation, byOwner: string): string {
  const beside =
    'Keep the other provider’s DS record beside it, and set ours only once that provider’s keys include `dnskey`.'
  if (hostedParent === null) return isShared ? `${byOwner} ${beside}` : byOwner
  const when = `if it is in the same account, or delegates ${name} to these nameservers, and has no other DS record for it`
  return `We add the DS record to ${hostedParent}, which is also hosted here, ${when}.`
}

const untilText = ({ nextCheckAt }: Situation) =>
  nextCheckAt === null ? 'soon' : `at ${nextCheckAt.toISOString().slice(0, 16)}Z`

function unsignedText(situation: Situation, ds: readonly string[]): string {
  const { name, enabled, verified, foreign, fault } = situation
  if (foreign)
    return `${foreignText(name, ds)}; ${enabled ? 'signing starts automatically once it is gone' : 'nothing else helps'}.`
  if (!enabled) return 'The zone is not signed. To sign it, PUT {"enabled": true}.'
  if (!verified) return `The zone is signed as soon as ${name} is verified.`
  return fault ?? `The zone is signed once we have checked whether the parent has a DS record for ${name}.`
}

const faultText = ({ fault }: Situation) => (fault === null ? '' : ` ${fault}`)

function signedText(situation: Situation, ds: readonly string[]): string {
  const { name, foreign, matches, surplus } = situation
  if (foreign) return `${foreignText(name, ds)}, and set the one in \`ds\` in its place.`
  const other =
    matches && surplus.length > 0 ? ` Other DS records there match no key of the zone: ${surplus.join('; ')}.` : ''
  if (situation.rollover === 'published') {
    return `A new key signs alongside the old one. Its DS appears here once every cache has the key, ${untilText(situation)}.`
  }
  if (situation.rollover === 'announced') {
    const both = 'The old key stays until the new DS has been there for its TTL.'
    const set = dsText(situation, `Replace the DS of the old key with the one in \`ds\` at the registrar of ${name}.`)
    return `${set} ${both}${faultText(situation)}`
  }
  if (situation.rollover === 'seen') {
    return 'The parent shows the DS of the new key. We remove the old key once no cache needs it.'
  }
  if (matches) return `The chain of trust is complete; there is nothing to do.${other}${faultText(situation)}`
  const set = dsText(situation, `Set the DS record in \`ds\` at the registrar of ${name}; we detect it automatically.`)
  return `The zone is signed. ${set}${faultText(situation)}`
}

export function reasonOf(situation: Situation, ds: readonly string[]): string {
  const { name, state, matches } = situation
  if (state === 'unsigned') return unsignedText(situation, ds)
  if (state === 'signing') {
    const until = `Caches may still have unsigned answers ${situation.hostedParent === null ? 'until then' : 'before that'}`
    const set = dsText(situation, `Set the DS record in \`ds\` at the registrar of ${name} ${untilText(situation)}.`)
    return `The zone is signed. ${set} ${until}.${faultText(situation)}`
  }
  if (state !== 'leaving') return signedText(situation, ds)
  if (matches && situation.hostedParent === null) {
    return `Remove the DS record of ${name} at its registrar. The zone stays signed until it has expired from every cache.${faultText(situation)}`
  }
  return `The zone stays signed until its DS record has expired from every cache and cannot appear at a parent.${faultText(situation)}`
}
