// What happens next with the signing of a zone, or what its owner has to do, in sentences.
import type { DnssecState } from './dnssec-states.ts'

export type Situation = {
  name: string
  enabled: boolean
  verified: boolean
  state: DnssecState
  /** The parent shows DS records of others alone. */
  foreign: boolean
  /** The parent shows a DS of a key of the zone. */
  matches: boolean
  /** How far a rollover is; null without one. */
  rollover: 'published' | 'announced' | 'seen' | null
  /** The parent shows DS records of others besides. */
  surplus: readonly string[]
  /** Another provider signs the zone too. */
  isShared: boolean
  /** The zone above, if it is here too. */
  hostedParent: string | null
  fault: string | null
  nextCheckAt: Date | null
}

export function foreignText(name: string, ds: readonly string[]): string {
  const which = ds.map((text) => text.split(' ')[0]).join(', ')
  return (
    `The registrar of ${name} still has a DS record of another DNS provider (key tag ${which}). Resolvers that validate ` +
    `refuse every answer for ${name} because of it, whether the zone is signed here or not. Remove it at the registrar`
  )
}

/** What has to be done about the DS at the parent: by us, where the parent is here. */
function dsText({ name, isShared, hostedParent }: Situation, byOwner: string): string {
  const beside = 'Keep the DS record of the other provider beside it, and set ours only when its keys include `dnskey`.'
  if (hostedParent === null) return isShared ? `${byOwner} ${beside}` : byOwner
  const when = `if it is in the same account, or delegates ${name} to these nameservers, and has no other DS record for it`
  return `We add the DS record to ${hostedParent}, which is here too, ${when}.`
}

const untilText = ({ nextCheckAt }: Situation) =>
  nextCheckAt === null ? 'soon' : `at ${nextCheckAt.toISOString().slice(0, 16)}Z`

function unsignedText(situation: Situation, ds: readonly string[]): string {
  const { name, enabled, verified, foreign, fault } = situation
  if (foreign)
    return `${foreignText(name, ds)}; ${enabled ? 'signing starts by itself when it is gone' : 'nothing else helps'}.`
  if (!enabled) return 'The zone is not signed. PUT {"enabled": true} signs it.'
  if (!verified) return `The zone is signed as soon as ${name} is verified.`
  return fault ?? `The zone is signed as soon as the parent was asked whether it has a DS record for ${name}.`
}

const faultText = ({ fault }: Situation) => (fault === null ? '' : ` ${fault}`)

function signedText(situation: Situation, ds: readonly string[]): string {
  const { name, foreign, matches, surplus } = situation
  if (foreign) return `${foreignText(name, ds)}, and set the one in \`ds\` in its place.`
  const other =
    matches && surplus.length > 0 ? ` The DS records of others there are of no use: ${surplus.join('; ')}.` : ''
  if (situation.rollover === 'published') {
    return `A new key signs beside the old one. Its DS is shown here when every cache has the key, ${untilText(situation)}.`
  }
  if (situation.rollover === 'announced') {
    const both = 'The old key stays until the new DS has been there for its TTL.'
    const set = dsText(situation, `Replace the DS of the old key by the one in \`ds\` at the registrar of ${name}.`)
    return `${set} ${both}${faultText(situation)}`
  }
  if (situation.rollover === 'seen') {
    return 'The parent shows the DS of the new key. The old key goes when no cache needs it any more.'
  }
  if (matches) return `The chain of trust is complete; there is nothing to do.${other}${faultText(situation)}`
  const set = dsText(situation, `Set the DS record in \`ds\` at the registrar of ${name}; Berth finds it there.`)
  return `The zone is signed. ${set}${faultText(situation)}`
}

export function reasonOf(situation: Situation, ds: readonly string[]): string {
  const { name, state, matches } = situation
  if (state === 'unsigned') return unsignedText(situation, ds)
  if (state === 'signing') {
    const until = `Caches may have unsigned answers ${situation.hostedParent === null ? 'until then' : 'before that'}`
    const set = dsText(situation, `Set the DS record in \`ds\` at the registrar of ${name} ${untilText(situation)}.`)
    return `The zone is signed. ${set} ${until}.${faultText(situation)}`
  }
  if (state !== 'leaving') return signedText(situation, ds)
  if (matches && situation.hostedParent === null) {
    return `Remove the DS record of ${name} at its registrar. The zone stays signed until every cache has forgotten it.${faultText(situation)}`
  }
  return `The zone stays signed until no cache has a DS record of it, and no parent is about to have one.${faultText(situation)}`
}
