// Secondaries that lag behind: a row for the duration of a lag, and events at its start and end. Also stores the last
// check of each customer's secondary.
import type { Static } from '@sinclair/typebox'
import { type Database, type Db, inTransaction } from '../../../platform/database/database.ts'
import type { lagReasons, probeErrors, SecondaryLag, SecondaryStatus } from '../../../schemas/secondaries.ts'
import { append } from '../../events/index.ts'
import type { Actor } from '../../identity/index.ts'
import type { Zone } from '../records/dns-records.ts'
import { seesWholeZone } from '../records/within-parts.ts'

export type LagReason = (typeof lagReasons)[number]

const details: Record<LagReason, string> = {
  timeout: 'It does not answer.',
  refused: 'Nothing listens at its address and port.',
  unreachable: 'It cannot be reached.',
  invalid_answer: 'Its answers are malformed.',
  not_served: 'It was notified, but does not serve the zone: it may not be configured for it, or could not load it.',
  not_notified: 'It does not acknowledge NOTIFY, so it does not know of the change yet.',
  not_transferred: 'It was notified of the change, but has not requested it.',
  rejected: 'It received the zone but does not serve it, because it rejects something in it. Check its log.',
  behind: 'The change is being transferred.',
}

export type NewLag = { zoneId: string; secondary: string; served: number | null; reason: LagReason; since: Date }

const zoneOf = { name: true, serial: true, accountId: true, projectId: true } as const

/** Starts a lag, with an event for the owner of the zone, or updates its reason. */
export async function beginLag(db: Database, lag: NewLag): Promise<void> {
  const { zoneId: domainId, secondary, served, reason, since } = lag
  await inTransaction(db, async (db) => {
    const zone = await db.domain.findUnique({ where: { id: domainId }, select: zoneOf })
    if (!zone) return
    const made = await db.secondaryLag.createMany({
      data: [{ domainId, secondary, reason, since }],
      skipDuplicates: true,
    })
    if (made.count === 0) await db.secondaryLag.updateMany({ where: { domainId, secondary }, data: { reason } })
    else await appendLagEvent(db, 'dns.secondary.lagging', zone, { secondary, served, reason, since })
  })
}

export async function endLag(db: Database, domainId: string, secondary: string): Promise<void> {
  await inTransaction(db, async (db) => {
    const [zone, lag] = await Promise.all([
      db.domain.findUnique({ where: { id: domainId }, select: zoneOf }),
      db.secondaryLag.findUnique({ where: { domainId_secondary: { domainId, secondary } } }),
    ])
    if (!zone || !lag) return
    const gone = await db.secondaryLag.deleteMany({ where: { domainId, secondary } })
    if (gone.count === 0) return
    await appendLagEvent(db, 'dns.secondary.current', zone, {
      secondary,
      served: zone.serial,
      reason: null,
      since: lag.since,
    })
  })
}

type LagEvent = Pick<NewLag, 'secondary' | 'served' | 'since'> & { reason: LagReason | null }
type LaggingZone = { name: string; serial: number; accountId: string; projectId: string }

function appendLagEvent(
  db: Db,
  type: 'dns.secondary.lagging' | 'dns.secondary.current',
  { name: domain, serial, accountId, projectId }: LaggingZone,
  { secondary, served, reason, since }: LagEvent,
): Promise<void> {
  const data: Static<typeof SecondaryLag> = {
    domain,
    secondary,
    serial,
    served,
    error: reason,
    reason: reason && details[reason],
    since: since.toISOString(),
  }
  return append(db, [{ accountId, projectId, type, actor: 'system', subject: domain, data }])
}

/** Deletes the lag of a removed secondary, without an event. */
export async function deleteLag(db: Database, domainId: string, secondary: string): Promise<void> {
  await db.secondaryLag.deleteMany({ where: { domainId, secondary } })
}

type StoredLag = Omit<NewLag, 'zoneId' | 'served'> & { zone: string }

export async function knownLags(db: Database): Promise<StoredLag[]> {
  const found = await db.secondaryLag.findMany({ include: { domain: { select: { name: true } } } })
  return found.map(({ domain, secondary, reason, since }) => {
    return { zone: domain.name, secondary, reason: reason as LagReason, since }
  })
}

type StoredReason = { reason: LagReason; since: Date }

/** Explains why a nameserver is not current, from its own answer or from the sender of NOTIFY. */
export function explainLag(current: boolean, error: LagReason | null, known: StoredReason | undefined) {
  if (current) return { error: null, reason: null, since: null }
  const code = known && (error === null || error === 'not_served') ? known.reason : (error ?? 'behind')
  return { error: code, reason: details[code], since: known?.since.toISOString() ?? null }
}

/** The lags of a zone by secondary. */
export async function lagsOf(db: Db, domainId: string): Promise<Map<string, StoredReason>> {
  const found = await db.secondaryLag.findMany({ where: { domainId } })
  return new Map(found.map(({ secondary, reason, since }) => [secondary, { reason: reason as LagReason, since }]))
}

type Check = { zoneId: string; secondary: string; serial: number | null; error: (typeof probeErrors)[number] | null }

export async function recordSecondaryCheck(
  db: Database,
  { zoneId: domainId, secondary, serial, error }: Check,
): Promise<void> {
  // Its key may have been deleted during the check.
  if (!(await db.dnsKey.findFirst({ where: { domainId, notify: { has: secondary } }, select: { id: true } }))) return
  const now = { serial: serial === null ? null : BigInt(serial), error, checkedAt: new Date() }
  await db.secondaryCheck.upsert({
    where: { domainId_secondary: { domainId, secondary } },
    create: { domainId, secondary, ...now },
    update: now,
  })
}

// The maximum in a response, which shows earlier checks and queries no secondary.
const maxSecondaries = 100

/** The secondaries in the keys of a zone; empty if the actor can't see the keys. */
export async function secondariesOf(db: Db, actor: Actor, zone: Zone): Promise<Static<typeof SecondaryStatus>[]> {
  if (!seesWholeZone(actor, zone.id)) return []
  const ofZone = { where: { domainId: zone.id } }
  const [keys, checks, lags] = await Promise.all([
    db.dnsKey.findMany({ where: { domainId: zone.id, purpose: 'transfer' }, select: { notify: true } }),
    db.secondaryCheck.findMany(ofZone),
    lagsOf(db, zone.id),
  ])
  const checkOf = new Map(checks.map((check) => [check.secondary, check]))
  const addresses = [...new Set(keys.flatMap(({ notify }) => notify))].sort().slice(0, maxSecondaries)
  return addresses.map((address) => {
    const check = checkOf.get(address)
    if (!check) {
      const unknown = { serial: null, behind: null, current: false, error: null, reason: null, since: null }
      return { address, ...unknown, checkedAt: null }
    }
    const serial = check.serial === null ? null : Number(check.serial)
    const current = serial === zone.serial
    // Serial arithmetic: a secondary ahead of us does not lag.
    const behind = serial === null ? null : Math.max(0, (zone.serial - serial) | 0)
    const lag = explainLag(current, check.error as LagReason | null, lags.get(address))
    return { address, serial, behind, current, ...lag, checkedAt: check.checkedAt.toISOString() }
  })
}
