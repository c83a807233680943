// Applies the steps of a zone's signing: changes keys and state, appends events, and queues the next check.
import type { Prisma, ZoneKey } from '../../../generated/client.ts'
import { enqueue } from '../../../jobs/queue.ts'
import type { Db } from '../../../platform/database/database.ts'
import type { Vault } from '../../../platform/secrets/secrets.ts'
import { append, type EventType } from '../../events/index.ts'
import {
  type Decision,
  type DnssecState,
  decide,
  dnssecTransitions,
  type Sighting,
  type Step,
} from './dnssec-states.ts'
import { isWanted, type SignedDomain, type SigningOptions, viewDnssec, withSigning } from './dnssec-view.ts'
import { createZoneKey } from './zone-keys.ts'

export type StepOptions = SigningOptions & { vault: Vault }

const system = 'system'

/** The columns of a finished check of the parent. */
export type ParentCheck = Partial<
  Pick<Prisma.ZoneSigningUncheckedUpdateInput, 'checkedAt' | 'parentDs' | 'fault' | 'hostedParent'>
>

/** The longest TTL of a zone's records; 0 without any. */
export async function maxTtlOf(db: Db, domainId: string): Promise<number> {
  const { _max } = await db.dnsRecord.aggregate({ where: { domainId }, _max: { ttl: true } })
  return _max.ttl ?? 0
}

/** Reads the row of a domain with its signing. */
export async function readSigned(db: Db, id: string): Promise<SignedDomain | null> {
  return db.domain.findUnique({ where: { id }, include: withSigning })
}

/**
 * Decides and applies the next step, with events and the next job. The caller must have locked the domain. `soon`:
 * check the parent at once, because something has changed.
 */
export async function advance(
  db: Db,
  options: StepOptions,
  row: SignedDomain,
  {
    parent,
    served = false,
    checked = {},
    by = system,
    soon = false,
    maxTtl,
  }: {
    parent: Sighting | null
    served?: boolean
    checked?: ParentCheck
    by?: string
    soon?: boolean
    /** The result of `maxTtlOf`, if the caller has it. */
    maxTtl?: number
  },
): Promise<SignedDomain> {
  const now = new Date()
  const { id, signing } = row
  const state = row.dnssecState as DnssecState
  const decision = decide(
    {
      wanted: isWanted(options, row),
      state,
      keys: row.zoneKeys,
      maxTtl: maxTtl ?? (await maxTtlOf(db, id)),
      dsTtl: signing?.dsTtl ?? null,
      dsSince: signing?.dsSince ?? null,
      goneSince: signing?.goneSince ?? null,
      checkingSince: soon ? now : (signing?.checkingSince ?? now),
      parent,
      served,
    },
    now,
  )
  const zoneKeys = await applyStep(db, options, row, decision.step)
  const { state: _state, step, ...times } = decision
  const nextCheckAt = soon && times.nextCheckAt ? now : times.nextCheckAt
  const data = { ...times, ...checked, nextCheckAt }
  const create = { domainId: id, ...createdWith(data) }
  const written = await db.zoneSigning.upsert({ where: { domainId: id }, create, update: data })
  // Merged instead of read again, because others wait for the lock.
  const after: SignedDomain = { ...row, zoneKeys, signing: written }
  if (nextCheckAt) await enqueue(db, { kind: 'dnssec', key: id, payload: { domainId: id }, runAt: nextCheckAt })
  if (decision.state !== state || step === 'leave' || step === 'return' || step === 'stop') {
    const cdsDelete = decision.state === 'leaving'
    const changed = { dnssecState: decision.state, cdsDelete, updatedAt: now }
    await db.domain.updateMany({ where: { id }, data: changed })
    Object.assign(after, changed)
  }
  for (const type of eventsOf(row, decision)) await appendDnssecEvent(db, options, after, { type, by })
  return after
}

/** A new row gets the same values as an update. */
function createdWith(
  data: Omit<Decision, 'state' | 'step'> & ParentCheck,
): Omit<Prisma.ZoneSigningUncheckedCreateInput, 'domainId'> {
  return data as Omit<Prisma.ZoneSigningUncheckedCreateInput, 'domainId'>
}

/** Changes the keys as the step requires, and returns the keys afterwards. */
async function applyStep(
  db: Db,
  { vault }: StepOptions,
  { id, zoneKeys }: SignedDomain,
  step: Step | null,
): Promise<ZoneKey[]> {
  const [first] = zoneKeys
  const last = zoneKeys.at(-1)
  if (step === 'start') return [...zoneKeys, await addKey(db, vault, id)]
  if (step === 'announce') {
    await db.zoneKey.updateMany({
      where: { domainId: id, id: { not: last!.id }, announced: true },
      data: { announced: false },
    })
    await db.zoneKey.updateMany({ where: { id: last!.id, announced: false }, data: { announced: true } })
    return zoneKeys.map((key) => ({ ...key, announced: key === last }))
  }
  if (step === 'withdraw') {
    await db.zoneKey.deleteMany({ where: { id: first!.id } })
    return zoneKeys.slice(1)
  }
  if (step === 'stop') {
    await db.zoneKey.deleteMany({ where: { domainId: id } })
    return []
  }
  return zoneKeys
}

/** Adds a key that signs from now on and is announced later. */
export async function addKey(db: Db, vault: Vault, domainId: string): Promise<ZoneKey> {
  return db.zoneKey.create({
    data: createZoneKey(vault, domainId, { published: true, signing: true, announced: false }),
  })
}

function eventsOf({ dnssecState, zoneKeys }: SignedDomain, { state, step }: Decision): EventType[] {
  const moved = dnssecTransitions.filter(({ from, to }) => from === dnssecState && to === state)
  const rolled: EventType[] = [
    ...(step === 'announce' && zoneKeys.length > 1 ? ['dns.dnssec.rollover_announced' as const] : []),
    ...(step === 'withdraw' ? ['dns.dnssec.rollover_finished' as const] : []),
  ]
  return [...moved.map(({ event }) => event), ...rolled]
}

export function appendDnssecEvent(
  db: Db,
  options: SigningOptions,
  row: SignedDomain,
  { type, by }: { type: EventType; by: string },
): Promise<void> {
  const { accountId, projectId, name } = row
  return append(db, [{ accountId, projectId, type, actor: by, subject: name, data: viewDnssec(options, row) }])
}
