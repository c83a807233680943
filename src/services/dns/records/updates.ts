// Updates of a zone by standard clients (RFC 2136): what they ask for becomes changes that pass the rules of a batch.
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
import { type Prerequisite, planUpdate, type UpdateOutcome, type UpdateStep, unmet } from './update-plans.ts'
import { requireRecords } from './within-parts.ts'

export type SignedUpdate = {
  keyId: string
  /** The signature of the request, by which it is known again. */
  mac: Buffer
  /** How long the signature is accepted. */
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

/** Does all of it or nothing. Throws only what the sender is not to blame for. */
export async function applyUpdate(db: Database, update: SignedUpdate): Promise<UpdateOutcome> {
  try {
    return await db.$transaction((db) => apply(db, update))
  } catch (error) {
    // What the rules or the limits of the account refuse has left nothing behind, not even that it was answered.
    if (!(error instanceof Fault) && !refusedQuota(error) && raised(error, 'BQ003') === null) throw error
    await remember(db, update, 'REFUSED')
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
  // Under the lock of the zone: the same request at another nameserver has been done, or waits.
  const answered = await db.dnsUpdate.findUnique({ where: { keyId_mac: { keyId, mac: Uint8Array.from(mac) } } })
  if (answered) return nameOf(answered.rcode)
  // All records of a name are deleted one by one, so that there the name is looked at first, and each record later.
  requireRecords(
    actor,
    zone.id,
    steps.map(({ name, type }) => ({ name, type: type ?? key.types[0] ?? 'ANY' })),
  )
  const outcome = await carryOut(db, actor, zone, update)
  await remember(db, update, outcome)
  await noteUse(db, key)
  return outcome
}

function findOpenKey(db: Db, id: string): Promise<OpenKey | null> {
  const domain = { select: { name: true, account: { select: { suspendedAt: true } } } }
  return db.dnsKey.findUnique({ where: { id }, include: { domain } })
}

/** A key may do what a token for its part of the zone may do, and events name it. */
function actorOf({ id, accountId, domainId, names, types }: DnsKey): Actor {
  const zoneParts = [{ domainId, names, types }]
  return { accountId, tokenId: id, scopes: ['dns:write'], projectIds: null, zoneParts }
}

async function carryOut(db: Db, actor: Actor, zone: Zone, update: SignedUpdate): Promise<UpdateOutcome> {
  const { prerequisites, steps } = update
  const names = [...new Set([...prerequisites, ...steps].map(({ name }) => name))]
  const rows = names.length > 0 ? await selectRecordsByName(db, { zoneId: zone.id, names }) : []
  const failed = unmet(prerequisites, rows)
  if (failed) return failed
  const changes = await checkChanges(db, actor, zone, planUpdate(zone.name, steps, rows))
  await refuseHidden(db, zone, changes)
  await writeChanges(db, actor, zone, changes)
  return 'NOERROR'
}

/**
 * Refuses to add what a delegation would hide from every resolver, by the rule with which an import reports such records:
 * the answer to an update has no room for a report, and its sender, often an ACME client, would wait for the name in vain.
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
  // Any delegation of the zone may need the address of a nameserver, not only the one above it.
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

async function remember(db: Db, { keyId, mac, expiresAt }: SignedUpdate, outcome: UpdateOutcome): Promise<void> {
  await db.dnsUpdate.createMany({
    data: { keyId, mac: Uint8Array.from(mac), rcode: outcomes[outcome], expiresAt },
    skipDuplicates: true,
  })
}

function nameOf(rcode: number): UpdateOutcome {
  return (Object.keys(outcomes) as UpdateOutcome[]).find((name) => outcomes[name] === rcode)!
}

const useMs = 60_000

/** Once a minute is exact enough. */
async function noteUse(db: Db, { id, lastUsedAt }: DnsKey): Promise<void> {
  const now = new Date()
  if (lastUsedAt && now.getTime() - lastUsedAt.getTime() < useMs) return
  await db.dnsKey.update({ where: { id }, data: { lastUsedAt: now } })
}

/** Forgets updates whose signatures are not accepted any more, and tells how many. */
export async function forgetOldUpdates(db: Db): Promise<number> {
  const { count } = await db.dnsUpdate.deleteMany({ where: { expiresAt: { lt: new Date() } } })
  return count
}
