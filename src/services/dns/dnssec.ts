// The signing of a zone (DNSSEC): read, turned on and off, and the rollover of its key.
import type { Static } from '@sinclair/typebox'
import { type Db, inTransaction } from '../../platform/database.ts'
import { Fault } from '../../platform/errors.ts'
import type { PutDnssec } from '../../schemas/dnssec.ts'
import { type Actor, actorName } from '../tokens/actor.ts'
import { findZone, findZoneToChange } from './dns-records.ts'
import { addKey, advance, readSigned, type StepOptions, tellDnssec } from './dnssec-steps.ts'
import { type DnssecView, isEnabled, type SignedDomain, type SigningOptions, viewDnssec } from './dnssec-view.ts'
import { requireWholeZone } from './within-parts.ts'

export async function findDnssec(db: Db, options: SigningOptions, actor: Actor, path: string): Promise<DnssecView> {
  const { id, name } = await findZone(db, actor, path)
  const row = await readSigned(db, id)
  if (!row) throw new Fault('not_found', `There is no domain ${name}.`)
  return viewDnssec(options, row)
}

/** Refuses who may not switch the signing of the zone. */
export async function checkDnssec(db: Db, actor: Actor, path: string): Promise<void> {
  const { id } = await findZone(db, actor, path)
  requireWholeZone(actor, id)
}

/** When and whether the parent was asked is no change of the zone's signing. */
export function dnssecVersion({
  parent: { checkedAt: _time, ...parent },
  nextCheckAt: _next,
  ...view
}: DnssecView): unknown {
  return { ...view, reason: null, parent }
}

/** The zone's signing, locked; refused to whoever has only a part of the zone. */
async function lockSigned(db: Db, actor: Actor, path: string): Promise<SignedDomain> {
  const zone = await findZoneToChange(db, actor, path)
  requireWholeZone(actor, zone.id)
  return (await readSigned(db, zone.id))!
}

type Change = { path: string; input: Static<typeof PutDnssec>; precondition: (version: unknown) => void }

export async function putDnssec(
  db: Db,
  options: StepOptions,
  actor: Actor,
  { path, input: { enabled, denial }, precondition }: Change,
): Promise<DnssecView> {
  return inTransaction(db, async (db) => {
    const row = await lockSigned(db, actor, path)
    precondition(dnssecVersion(viewDnssec(options, row)))
    const { id, dnssecState } = row
    const wish = { dnssec: enabled, ...(denial && { dnssecDenial: denial }) }
    const isSame = isEnabled(options, row) === enabled && (denial ?? row.dnssecDenial) === row.dnssecDenial
    await db.domain.update({ where: { id }, data: { ...wish, ...(!isSame && { updatedAt: new Date() }) } })
    const by = actorName(actor)
    const after = await advance(db, options, { ...row, ...wish }, { parent: null, by, soon: true })
    if (!isSame && after.dnssecState === dnssecState)
      await tellDnssec(db, options, after, { type: 'dns.dnssec.updated', by })
    return viewDnssec(options, after)
  })
}

/** Has a new key take the place of the present one, over days and by itself. */
export async function rollOver(db: Db, options: StepOptions, actor: Actor, path: string): Promise<DnssecView> {
  return inTransaction(db, async (db) => {
    const row = await lockSigned(db, actor, path)
    const { id, name, dnssecState, zoneKeys } = row
    if (dnssecState !== 'active') {
      const cure = 'Without a DS at the parent, turning it off and on again makes a new key.'
      throw new Fault('dnssec_not_ready', `A rollover needs the state active, and ${name} is ${dnssecState}. ${cure}`)
    }
    if (zoneKeys.length > 1) throw new Fault('dnssec_not_ready', `A rollover of the key of ${name} is under way.`)
    await addKey(db, options.vault, id)
    const by = actorName(actor)
    const after = await advance(db, options, (await readSigned(db, id))!, { parent: null, by, soon: true })
    await tellDnssec(db, options, after, { type: 'dns.dnssec.rollover_started', by })
    return viewDnssec(options, after)
  })
}
