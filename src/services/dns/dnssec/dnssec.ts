// Reads and changes the signing of a zone (DNSSEC), and starts key rollovers.
import type { Static } from '@sinclair/typebox'
import { foreignKeyExpects, readForeignKey } from '../../../dns/dnssec/foreign-keys.ts'
import { type Db, inTransaction } from '../../../platform/database/database.ts'
import { Fault, invalidField } from '../../../platform/errors.ts'
import type { ForeignKeys, PutDnssec, PutForeignKeys } from '../../../schemas/dnssec.ts'
import { type Actor, actorName } from '../../identity/index.ts'
import { findZone, findZoneToChange } from '../records/dns-records.ts'
import { requireWholeZone } from '../records/within-parts.ts'
import { addKey, advance, appendDnssecEvent, readSigned, type StepOptions } from './dnssec-steps.ts'
import { type DnssecView, isEnabled, type SignedDomain, type SigningOptions, viewDnssec } from './dnssec-view.ts'

export async function findDnssec(db: Db, options: SigningOptions, actor: Actor, path: string): Promise<DnssecView> {
  const { id, name } = await findZone(db, actor, path)
  const row = await readSigned(db, id)
  if (!row) throw new Fault('not_found', `There is no domain ${name}.`)
  return viewDnssec(options, row)
}

/** Throws unless the actor may change the signing of the zone. */
export async function checkDnssec(db: Db, actor: Actor, path: string): Promise<void> {
  const { id } = await findZone(db, actor, path)
  requireWholeZone(actor, id)
}

/** The version for preconditions, without the fields that checks of the parent change. */
export function dnssecVersion({
  parent: { checkedAt: _time, ...parent },
  nextCheckAt: _next,
  ...view
}: DnssecView): unknown {
  return { ...view, reason: null, parent }
}

/** Locks and reads the zone's signing. Throws if the actor has only a part of the zone. */
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
      await appendDnssecEvent(db, options, after, { type: 'dns.dnssec.updated', by })
    return viewDnssec(options, after)
  })
}

type ForeignKeysView = Static<typeof ForeignKeys>
const keysOf = ({ foreignKeys }: DnssecView): ForeignKeysView => ({ keys: foreignKeys })

export async function findForeignKeys(...args: Parameters<typeof findDnssec>): Promise<ForeignKeysView> {
  return keysOf(await findDnssec(...args))
}

function foreignKeysOf({ name, zoneKeys }: SignedDomain, keys: readonly string[]): string[] {
  const own = zoneKeys.map(({ publicKey }) => Buffer.from(publicKey).toString('base64'))
  const read = keys.map((text, index) => {
    const pointer = `#/keys/${index}`
    const key = readForeignKey(text)
    if (key === null) throw invalidField(pointer, 'bad_format', `A key consists of ${foreignKeyExpects}.`)
    if (own.includes(key.split(' ')[3]!)) {
      throw invalidField(pointer, 'not_allowed', `This is our key of ${name}. List the keys of the other provider.`)
    }
    return key
  })
  return [...new Set(read)]
}

/** Replaces the keys of another provider that signs the zone too. */
export async function putForeignKeys(
  db: Db,
  options: StepOptions,
  actor: Actor,
  { path, input: { keys }, precondition }: Omit<Change, 'input'> & { input: Static<typeof PutForeignKeys> },
): Promise<ForeignKeysView> {
  return inTransaction(db, async (db) => {
    const row = await lockSigned(db, actor, path)
    const before = keysOf(viewDnssec(options, row))
    precondition(before)
    const foreignKeys = foreignKeysOf(row, keys)
    if (foreignKeys.join() === row.foreignKeys.join()) return before
    await db.domain.update({ where: { id: row.id }, data: { foreignKeys, updatedAt: new Date() } })
    const by = actorName(actor)
    const after = await advance(db, options, { ...row, foreignKeys }, { parent: null, by, soon: true })
    await appendDnssecEvent(db, options, after, { type: 'dns.dnssec.updated', by })
    return keysOf(viewDnssec(options, after))
  })
}

/** Starts a rollover: a new key automatically replaces the current one over several days. */
export async function rollOver(db: Db, options: StepOptions, actor: Actor, path: string): Promise<DnssecView> {
  return inTransaction(db, async (db) => {
    const row = await lockSigned(db, actor, path)
    const { id, name, dnssecState, zoneKeys } = row
    if (dnssecState !== 'active') {
      const cure = 'If the parent has no DS record, turn DNSSEC off and on again to create a new key.'
      throw new Fault(
        'dnssec_not_ready',
        `A rollover needs the state ACTIVE, but ${name} is ${dnssecState.toUpperCase()}. ${cure}`,
      )
    }
    if (zoneKeys.length > 1) throw new Fault('dnssec_not_ready', `A key rollover of ${name} is already in progress.`)
    await addKey(db, options.vault, id)
    const by = actorName(actor)
    const after = await advance(db, options, (await readSigned(db, id))!, { parent: null, by, soon: true })
    await appendDnssecEvent(db, options, after, { type: 'dns.dnssec.rollover_started', by })
    return viewDnssec(options, after)
  })
}
