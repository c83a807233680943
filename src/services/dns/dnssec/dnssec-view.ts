// The signing of a zone as the API shows it.
import type { Static } from '@sinclair/typebox'
import type { Config } from '../../../config.ts'
import { dsTextOf, isDsOf } from '../../../dns/dnssec/ds-texts.ts'
import { isDsOfForeign, viewForeignKey } from '../../../dns/dnssec/foreign-keys.ts'
import { digestType, keyFlags, signingAlgorithm } from '../../../dns/dnssec/keys.ts'
import type { Domain, ZoneKey, ZoneSigning } from '../../../generated/client.ts'
import type { Dnssec } from '../../../schemas/dnssec.ts'
import { reasonOf, type Situation } from './dnssec-reasons.ts'
import type { DnssecState } from './dnssec-states.ts'

export type DnssecView = Static<typeof Dnssec>
type KeyView = DnssecView['keys'][number]

/** A domain with everything on which its signing depends; keys are oldest first. */
export type SignedDomain = Domain & { zoneKeys: ZoneKey[]; signing: ZoneSigning | null }

export const withSigning = { zoneKeys: { orderBy: { id: 'asc' } }, signing: true } as const

export type SigningOptions = Pick<Config, 'dnssec'>

type Wish = Pick<Domain, 'dnssec' | 'verified' | 'method'>

/** The owner's choice; by default, domains delegated to our nameservers are signed. */
export function isEnabled({ dnssec: byDefault }: SigningOptions, { dnssec, verified, method }: Wish): boolean {
  return dnssec ?? (byDefault && verified && method === 'nameservers')
}

/** Unverified zones are not signed. */
export function isWanted(options: SigningOptions, row: Wish & Pick<Domain, 'dnssecState'>): boolean {
  return isEnabled(options, row) && (row.verified || row.dnssecState !== 'unsigned')
}

/** The DS records, as texts, that match a key. */
function ownOf(row: SignedDomain, key: ZoneKey, ds: readonly string[]): string[] {
  return ds.filter((text) => isDsOf(row.name, key, text))
}

/** The ids of the keys with a matching DS record. */
export function keysShown(row: SignedDomain, ds: readonly string[]): string[] {
  return row.zoneKeys.filter((key) => ownOf(row, key, ds).length > 0).map(({ id }) => id)
}

/** The DS records that match neither a key of the zone nor one of another provider that signs it. */
export function foreignDsOf({ name, zoneKeys, foreignKeys }: SignedDomain, ds: readonly string[]): string[] {
  const isKnown = (text: string) =>
    zoneKeys.some((key) => isDsOf(name, key, text)) || foreignKeys.some((key) => isDsOfForeign(name, key, text))
  return ds.filter((text) => !isKnown(text))
}

function keyState(row: SignedDomain, key: ZoneKey, shown: readonly string[]): KeyView['state'] {
  if (row.dnssecState === 'leaving') return 'LEAVING'
  const newer = row.zoneKeys.slice(row.zoneKeys.indexOf(key) + 1)
  if (newer.some(({ id }) => shown.includes(id))) return 'RETIRING'
  if (shown.includes(key.id)) return 'ACTIVE'
  return key.announced ? 'ANNOUNCED' : newer.some(({ announced }) => announced) ? 'RETIRING' : 'PUBLISHED'
}

function viewDs(zone: string, key: ZoneKey): DnssecView['ds'][number] {
  const text = dsTextOf(zone, key)
  return { text, keyTag: key.tag, algorithm: signingAlgorithm, digestType, digest: text.split(' ').at(-1)! }
}

/** The keys whose DS the parent should have, now or once no cache has unsigned answers. */
function dsKeys(state: DnssecState, keys: readonly ZoneKey[]): ZoneKey[] {
  if (state === 'leaving') return []
  return keys.filter(({ announced, signing }) => announced || (state === 'signing' && signing))
}

function rolloverOf({ zoneKeys }: SignedDomain, shown: readonly string[]): Situation['rollover'] {
  const fresh = zoneKeys.at(-1)
  if (zoneKeys.length < 2 || !fresh) return null
  return shown.includes(fresh.id) ? 'seen' : fresh.announced ? 'announced' : 'published'
}

export function viewDnssec(options: SigningOptions, row: SignedDomain): DnssecView {
  const { name, zoneKeys, signing, verified } = row
  const state = row.dnssecState as DnssecState
  const parentDs = signing?.parentDs ?? []
  const shown = keysShown(row, parentDs)
  const enabled = isEnabled(options, row)
  const matches = shown.length > 0
  const others = foreignDsOf(row, parentDs)
  const situation: Situation = {
    name,
    enabled,
    verified,
    state,
    foreign: others.length > 0 && !matches,
    matches,
    rollover: rolloverOf(row, shown),
    surplus: others,
    isShared: row.foreignKeys.length > 0,
    hostedParent: signing?.hostedParent ?? null,
    fault: signing?.fault ?? null,
    nextCheckAt: signing?.nextCheckAt ?? null,
  }
  return {
    domain: name,
    enabled,
    state: state.toUpperCase() as DnssecView['state'],
    denial: row.dnssecDenial as DnssecView['denial'],
    keys: zoneKeys.map((key) => ({
      tag: key.tag,
      algorithm: signingAlgorithm,
      flags: keyFlags,
      publicKey: Buffer.from(key.publicKey).toString('base64'),
      state: keyState(row, key, shown),
      createdAt: key.createdAt.toISOString(),
    })),
    ds: dsKeys(state, zoneKeys).map((key) => viewDs(name, key)),
    dnskey: zoneKeys
      .filter(({ published }) => published)
      .map(({ publicKey }) => `${keyFlags} 3 ${signingAlgorithm} ${Buffer.from(publicKey).toString('base64')}`),
    foreignKeys: row.foreignKeys.map((key) => viewForeignKey(name, key)),
    parent: {
      checkedAt: signing?.checkedAt?.toISOString() ?? null,
      ds: parentDs,
      matches: signing?.checkedAt ? matches : null,
    },
    nextCheckAt: signing?.nextCheckAt?.toISOString() ?? null,
    reason: reasonOf(situation, others),
  }
}
