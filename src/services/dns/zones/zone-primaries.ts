// Zones that follow an external primary: its settings, and the results and times of checks.
import { isIP, isIPv6 } from 'node:net'
import type { Static } from '@sinclair/typebox'
import { listenAddress } from '../../../dns/listen-address.ts'
import type { TsigKey } from '../../../dns/packet/tsig.ts'
import type { ZonePrimary } from '../../../generated/client.ts'
import { enqueue } from '../../../jobs/queue.ts'
import { type Database, type Db, inTransaction } from '../../../platform/database/database.ts'
import { viewOf } from '../../../platform/database/views.ts'
import { Fault, type FieldError } from '../../../platform/errors.ts'
import { badField, refuseFields, type Sound } from '../../../platform/fields.ts'
import { isPublicAddress } from '../../../platform/http/public-address.ts'
import { placeOf, type Vault } from '../../../platform/secrets/secrets.ts'
import { type PutZonePrimary, ZonePrimary as ZonePrimarySchema } from '../../../schemas/zone-primaries.ts'
import { append, eventOf } from '../../events/index.ts'
import type { Actor } from '../../identity/index.ts'
import { findZone, findZoneToChange, type Zone } from '../records/dns-records.ts'
import { requireWholeZone } from '../records/within-parts.ts'
import { queueNotifiedZone, queueOverdueZones } from '../sql/zone-primary-statements.ts'

export type ZonePrimaryView = Static<typeof ZonePrimarySchema>
type Input = Static<typeof PutZonePrimary>

const viewRow = viewOf(ZonePrimarySchema)

function viewPrimary(zone: string, row: ZonePrimary): ZonePrimaryView {
  const serial = row.serial === null ? null : Number(row.serial)
  return viewRow(row, { domain: zone, primary: row.address, serial, nextCheckAt: row.dueAt.toISOString() })
}

/** The version for preconditions, without the fields that checks change. */
export function primaryVersion({ domain, primary, keyName, createdAt }: ZonePrimaryView): unknown {
  return { domain, primary, keyName, createdAt }
}

async function findRow(db: Db, zone: Zone): Promise<ZonePrimary> {
  const row = await db.zonePrimary.findUnique({ where: { domainId: zone.id } })
  if (!row) throw new Fault('not_found', `${zone.name} does not follow a primary.`)
  return row
}

export async function findPrimary(db: Db, actor: Actor, path: string): Promise<ZonePrimaryView> {
  const zone = await findZone(db, actor, path)
  requireWholeZone(actor, zone.id)
  return viewPrimary(zone.name, await findRow(db, zone))
}

type ParsedInput = { address: string; errors: FieldError[] }

function readInput({ primary = '192.0.2.1', keyName, secret }: Sound<Input>, allowPrivate: boolean): ParsedInput {
  const errors: FieldError[] = []
  const { host, port } = listenAddress(primary)
  const detail = 'must be an IP address with an optional port: 192.0.2.1, 192.0.2.1:5353, [2001:db8::1]:53'
  if (isIP(host) === 0 || !(port > 0 && port < 65_536)) errors.push(badField('#/primary', 'bad_format', detail))
  else if (!allowPrivate && !isPublicAddress(host)) {
    errors.push(badField('#/primary', 'not_allowed', 'must be a public address'))
  }
  if (keyName !== undefined && secret === undefined) {
    errors.push(badField('#/secret', 'required', 'a key needs both a name and a secret'))
  }
  if (keyName === undefined && secret !== undefined) {
    errors.push(badField('#/keyName', 'required', 'a key needs both a name and a secret'))
  }
  return { address: isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`, errors }
}

export type PrimaryOptions = { vault: Vault; allowPrivate: boolean }
export type PrimaryChange = { input: Input; precondition: (version: unknown) => void }

/** Throws the errors of a primary without changing anything. */
export async function checkPrimary(
  db: Db,
  actor: Actor,
  path: string,
  { input, allowPrivate }: { input: Sound<Input>; allowPrivate: boolean },
): Promise<void> {
  const zone = await findZone(db, actor, path)
  requireWholeZone(actor, zone.id)
  refuseFields(readInput(input, allowPrivate).errors)
}

/** Makes the zone follow a primary. */
export async function putPrimary(
  db: Db,
  actor: Actor,
  path: string,
  { input, vault, allowPrivate, precondition }: PrimaryOptions & PrimaryChange,
): Promise<ZonePrimaryView> {
  return inTransaction(db, async (db) => {
    const zone = await findZoneToChange(db, actor, path)
    requireWholeZone(actor, zone.id)
    const { address, errors } = readInput(input, allowPrivate)
    refuseFields(errors)
    const before = await db.zonePrimary.findUnique({ where: { domainId: zone.id } })
    precondition(before && primaryVersion(viewPrimary(zone.name, before)))
    const { keyName, secret } = input
    const sealed = secret && vault.seal(Buffer.from(secret, 'base64'), placeOf.zonePrimary(zone.id))
    const now = new Date()
    const data = {
      address,
      keyName: keyName?.toLowerCase().replace(/\.$/, '') ?? null,
      keySecret: sealed ? Uint8Array.from(sealed) : null,
      // Another primary may have another history.
      ...{ serial: null, checkedAt: null, currentAt: null, error: null },
      dueAt: now,
    }
    const row = await db.zonePrimary.upsert({
      where: { domainId: zone.id },
      create: { domainId: zone.id, createdAt: now, ...data },
      update: data,
    })
    await enqueue(db, { kind: 'follow', key: zone.id, payload: { domainId: zone.id }, runAt: now })
    return appendPrimaryEvent(db, actor, zone, { type: 'dns.primary.set', row })
  })
}

/** Stops following the primary. The records stay and become editable. */
export async function deletePrimary(
  db: Db,
  actor: Actor,
  path: string,
  precondition: (version: unknown) => void,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const zone = await findZoneToChange(db, actor, path)
    requireWholeZone(actor, zone.id)
    const row = await findRow(db, zone)
    precondition(primaryVersion(viewPrimary(zone.name, row)))
    await db.zonePrimary.delete({ where: { domainId: zone.id } })
    await appendPrimaryEvent(db, actor, zone, { type: 'dns.primary.removed', row })
  })
}

type PrimaryEvent = { type: 'dns.primary.set' | 'dns.primary.removed'; row: ZonePrimary }

async function appendPrimaryEvent(
  db: Db,
  actor: Actor,
  zone: Zone,
  { type, row }: PrimaryEvent,
): Promise<ZonePrimaryView> {
  const data = viewPrimary(zone.name, row)
  await append(db, [eventOf(actor, type, { subject: zone.name, projectId: zone.projectId, data })])
  return data
}

export type Followed = {
  domainId: string
  name: string
  accountId: string
  /** The stored form of `server`. */
  address: string
  server: { host: string; port: number }
  key: TsigKey | null
  /** The serial of the imported version; null for none. */
  serial: number | null
}

/** Returns null if the zone no longer follows a primary, or its account is suspended. */
export async function readFollowed(db: Database, vault: Vault, domainId: string): Promise<Followed | null> {
  const select = { name: true, accountId: true, account: { select: { suspendedAt: true } } }
  const row = await db.zonePrimary.findUnique({ where: { domainId }, include: { domain: { select } } })
  if (!row || row.domain.account.suspendedAt) return null
  const { address, keyName, keySecret, domain } = row
  const { host, port } = listenAddress(address)
  return {
    domainId,
    name: domain.name,
    accountId: domain.accountId,
    address,
    server: { host, port },
    key: keyName && keySecret ? { name: keyName, secret: vault.open(keySecret, placeOf.zonePrimary(domainId)) } : null,
    serial: row.serial === null ? null : Number(row.serial),
  }
}

/** The result of a check of a primary. */
export type PrimaryCheck = { serial: number; error: null; nextAt: Date } | { error: string; nextAt: Date }

/** Records a check and queues the next, unless the zone follows another primary or has another version by now. */
export async function recordPrimaryCheck(
  db: Database,
  { domainId, address, serial }: Followed,
  look: PrimaryCheck,
): Promise<void> {
  const now = new Date()
  const { error, nextAt } = look
  await inTransaction(db, async (db) => {
    const seen = error === null ? { serial: look.serial, currentAt: now } : {}
    const { count } = await db.zonePrimary.updateMany({
      where: { domainId, address, serial },
      data: { ...seen, error: error?.slice(0, 500) ?? null, checkedAt: now, dueAt: nextAt },
    })
    if (count > 0) await enqueue(db, { kind: 'follow', key: domainId, payload: { domainId }, runAt: nextAt })
  })
}

/** Handles a NOTIFY. Returns false unless it comes from the primary that the zone follows. */
export async function handleNotify(db: Database, zone: string, address: string): Promise<boolean> {
  return (await queueNotifiedZone(db, { zone, address: isIPv6(address) ? `[${address}]:` : `${address}:` })).length > 0
}

const overdueMs = 10 * 60_000

/** Queues overdue checks and returns their number. */
export async function requeueOverdueZones(db: Database): Promise<number> {
  return (await queueOverdueZones(db, { before: new Date(Date.now() - overdueMs) })).length
}
