// DNS updates by standard clients (RFC 2136), executed under the same rules as batches.
import { hiddenBelow, namesAbove, type PlacedRecord } from '../../../dns/conflicts.ts'
import { absoluteName } from '../../../dns/names.ts'
import type { Account, DnsKey, Domain } from '../../../generated/client.ts'
import { type Database, type Db, raised, refusedQuota } from '../../../platform/database/database.ts'
import { Fault } from '../../../platform/errors.ts'
import type { Actor } from '../../identity/index.ts'
import { findServedClaim, findServedNames } from '../sql/statements.ts'
import { selectNameserversNamed, selectRecordsByName } from '../sql/zone-statements.ts'
import { checkChanges } from './batches.ts'
import { findZoneToChange, type Zone } from './dns-records.ts'
import { type Changes, writeChanges } from './record-changes.ts'
import {
  checkPrerequisites,
  type Prerequisite,
  planUpdate,
  type UpdateOutcome,
  type UpdateStep,
} from './update-plans.ts'
import { requireRecords } from './within-parts.ts'

export type SignedUpdate = {
  keyId: string
  /** The signature, which identifies a repeated request. */
  mac: Buffer
  /** When the signature stops being accepted. */
  expiresAt: Date
  /** The name of the zone. */
  zone: string
  prerequisites: readonly Prerequisite[]
  steps: readonly UpdateStep[]
}

const outcomes: Record<UpdateOutcome, number> = {
  NOERROR: 0,
  NXDOMAIN: 3,
  REFUSED: 5,
  YXDOMAIN: 6,
  YXRRSET: 7,
  NXRRSET: 8,
  NOTAUTH: 9,
}

type OpenKey = DnsKey & { domain: Pick<Domain, 'name'> & { account: Pick<Account, 'suspendedAt'> } }

/** Applies an update completely or not at all. Throws only errors that are not the sender's fault. */
export async function applyUpdate(db: Database, update: SignedUpdate): Promise<UpdateOutcome> {
  try {
    return await db.$transaction((db) => apply(db, update))
  } catch (error) {
    // The rollback of a refused update also removed its stored outcome.
    if (!(error instanceof Fault) && !refusedQuota(error) && raised(error, 'BQ003') === null) throw error
    await recordUpdate(db, update, 'REFUSED')
    return 'REFUSED'
  }
}

async function apply(db: Db, update: SignedUpdate): Promise<UpdateOutcome> {
  const { keyId, mac, steps } = update
  const key = await findOpenKey(db, keyId)
  if (key?.purpose !== 'update' || key.domain.account.suspendedAt) return 'REFUSED'
  const [served] = await findServedClaim(db, { name: update.zone })
  if (key.domain.name !== update.zone || served?.id !== key.domainId) return 'NOTAUTH'
  const actor = actorOf(key)
  const zone = await findZoneToChange(db, actor, update.zone)
  // Under the zone's lock, so the same request at another nameserver is either done or waiting.
  const answered = await db.dnsUpdate.findUnique({ where: { keyId_mac: { keyId, mac: Uint8Array.from(mac) } } })
  if (answered) return nameOf(answered.rcode)
  // For a step on all types of a name, this checks only the name; checkChanges checks each record later.
  requireRecords(
    actor,
    zone.id,
    steps.map(({ name, type }) => ({ name, type: type ?? key.types[0] ?? 'ANY' })),
  )
  const outcome = await executeUpdate(db, actor, zone, update)
  await recordUpdate(db, update, outcome)
  await recordUse(db, key)
  return outcome
}

function findOpenKey(db: Db, id: string): Promise<OpenKey | null> {
  const domain = { select: { name: true, account: { select: { suspendedAt: true } } } }
  return db.dnsKey.findUnique({ where: { id }, include: { domain } })
}

/** The key acts like a token limited to its part of the zone, and events name the key. */
function actorOf({ id, accountId, domainId, names, types }: DnsKey): Actor {
  const zoneParts = [{ domainId, names, types }]
  return { accountId, tokenId: id, scopes: ['dns:write'], projectIds: null, zoneParts }
}

async function executeUpdate(db: Db, actor: Actor, zone: Zone, update: SignedUpdate): Promise<UpdateOutcome> {
  const { prerequisites, steps } = update
  const names = [...new Set([...prerequisites, ...steps].map(({ name }) => name))]
  const rows = names.length > 0 ? await selectRecordsByName(db, { zoneId: zone.id, names }) : []
  const failed = checkPrerequisites(prerequisites, rows)
  if (failed) return failed
  const changes = await checkChanges(db, actor, zone, planUpdate(zone.name, steps, rows))
  await refuseHidden(db, zone, changes)
  await writeChanges(db, actor, zone, changes)
  return 'NOERROR'
}

/**
 * Refuses to add records that a delegation would hide from resolvers. An import only reports such records, but the
 * answer to an update can't, and its sender, often an ACME client, would wait for the name in vain.
 */
async function refuseHidden(db: Db, zone: Zone, { created, deleted }: Changes): Promise<void> {
  const names = [...new Set(created.flatMap(({ name }) => [name, ...namesAbove(name)]))].filter((name) => name !== '@')
  if (names.length === 0) return
  const zoneId = zone.id
  const ofZones = (await findServedNames(db, { names: names.map((name) => absoluteName(name, zone.name)) })).map(
    ({ name }): PlacedRecord => ({ type: 'NS', name: name.slice(0, -zone.name.length - 1), value: '.' }),
  )
  const gone = new Set(deleted.map(({ id }) => id))
  const cuts = (await selectRecordsByName(db, { zoneId, names })).filter(({ type }) => type === 'NS')
  // Any delegation in the zone may need an address as glue, not only the one above its name.
  const addresses = created.filter(({ type }) => type === 'A' || type === 'AAAA').map(({ name }) => name)
  const hosts = [...new Set(addresses)].map((name) => absoluteName(name, zone.name))
  const served = hosts.length === 0 ? [] : await selectNameserversNamed(db, { zoneId, hosts })
  const others = [...cuts, ...served].filter(({ id }) => !gone.has(id))
  const own = new Set<PlacedRecord>(created)
  const [hidden] = hiddenBelow<PlacedRecord>([...ofZones, ...others, ...created], zone.name).filter(({ record }) =>
    own.has(record),
  )
  if (hidden) throw new Fault('record_conflict', `The delegation of ${hidden.delegation} hides ${hidden.record.name}.`)
}

async function recordUpdate(db: Db, { keyId, mac, expiresAt }: SignedUpdate, outcome: UpdateOutcome): Promise<void> {
  await db.dnsUpdate.createMany({
    data: { keyId, mac: Uint8Array.from(mac), rcode: outcomes[outcome], expiresAt },
    skipDuplicates: true,
  })
}

function nameOf(rcode: number): UpdateOutcome {
  return (Object.keys(outcomes) as UpdateOutcome[]).find((name) => outcomes[name] === rcode)!
}

const useResolutionMs = 60_000

/** Updates the last use at most once a minute. */
async function recordUse(db: Db, { id, lastUsedAt }: DnsKey): Promise<void> {
  const now = new Date()
  if (lastUsedAt && now.getTime() - lastUsedAt.getTime() < useResolutionMs) return
  await db.dnsKey.update({ where: { id }, data: { lastUsedAt: now } })
}

/** Deletes updates with expired signatures and returns their number. */
export async function deleteOldUpdates(db: Db): Promise<number> {
  const { count } = await db.dnsUpdate.deleteMany({ where: { expiresAt: { lt: new Date() } } })
  return count
}
