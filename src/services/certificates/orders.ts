// ACME accounts, orders with their leases, and challenges.
import type { AcmeAccount, Prisma } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { LostLease } from '../../platform/database/lease.ts'
import type { ValuesOf } from '../../platform/database/statement.ts'
import { newId } from '../../platform/ids.ts'
import { acquireOrder, type leasedOrder, renewOrder } from './statements.ts'

/** The order at the time of the lease. `url` is empty until the authority has created the order. */
export type AcmeOrder = ValuesOf<typeof leasedOrder>

/** The worker on an order; no other worker may change it during the lease. */
export type Lease = { subject: string; worker: string }

export type Challenge = {
  type: 'http-01' | 'dns-01'
  /** The validated host, without a wildcard. */
  name: string
  /** The zone in which our nameservers publish it. */
  zone: string | null
  token: string
  value: string
}

/**
 * Finds or adds the account at a directory; its `url` is empty until it is registered. The first worker stores its key,
 * and all use that one. An authority returns the existing account when a key is registered again, so concurrent workers
 * still create only one account.
 */
export async function findOrAddAccount(db: Db, directory: string, sealedKey: () => Buffer): Promise<AcmeAccount> {
  const found = await db.acmeAccount.findUnique({ where: { directory } })
  if (found) return found
  await db.acmeAccount.createMany({
    data: [{ directory, url: '', key: Uint8Array.from(sealedKey()) }],
    skipDuplicates: true,
  })
  return db.acmeAccount.findUniqueOrThrow({ where: { directory } })
}

export async function setAccountUrl(db: Db, directory: string, url: string): Promise<void> {
  await db.acmeAccount.updateMany({ where: { directory }, data: { url } })
}

/** Leases the order of a subject, creating it if needed. Returns null while another worker has the lease. */
export async function leaseOrder(db: Db, lease: Lease, directory: string): Promise<AcmeOrder | null> {
  const [order] = await acquireOrder(db, { ...lease, directory })
  return order ?? null
}

/** Returns false if the lease is lost. */
export async function extendLease(db: Db, lease: Lease): Promise<boolean> {
  return (await renewOrder(db, lease)).length > 0
}

const leasedBy = ({ subject, worker }: Lease) => ({ subject, leasedBy: worker })

/** Releases the order for the next worker. Deletes it if it never reached the authority. */
export async function releaseOrder(db: Db, lease: Lease): Promise<void> {
  await db.acmeOrder.deleteMany({ where: { ...leasedBy(lease), url: '' } })
  await db.acmeOrder.updateMany({ where: leasedBy(lease), data: { leasedBy: null, leasedUntil: null } })
}

/** Changes a leased order. Throws if the lease is lost. */
async function changeOrder(db: Db, lease: Lease, data: Prisma.AcmeOrderUpdateManyMutationInput): Promise<void> {
  const { count } = await db.acmeOrder.updateMany({ where: leasedBy(lease), data })
  if (count === 0) throw new LostLease()
}

/** Replaces the previous order of the row, and deletes its challenges. */
export async function resetOrder(
  db: Db,
  lease: Lease,
  { names, directory, key }: { names: string[]; directory: string; key: Buffer },
): Promise<void> {
  await inTransaction(db, async (db) => {
    const { subject } = lease
    await changeOrder(db, lease, { names, directory, url: '', key: Uint8Array.from(key), createdAt: new Date() })
    const published = await db.acmeChallenge.findMany({ where: { subject }, select: { zone: true } })
    await db.acmeChallenge.deleteMany({ where: { subject } })
    await incrementSerials(db, published)
  })
}

export async function setOrderUrl(db: Db, lease: Lease, url: string): Promise<void> {
  await changeOrder(db, lease, { url })
}

/** Deletes a finished order. Returns false if the lease is lost; the caller must then stop. */
export async function endOrder(db: Db, lease: Lease): Promise<boolean> {
  return (await deleteOrders(db, leasedBy(lease))) > 0
}

/** Ends an attempt, and the order unless the next attempt continues it. Returns false like `endOrder`. */
export function endAttempt(db: Db, lease: Lease, { keepsOrder }: { keepsOrder: boolean }): Promise<boolean> {
  return keepsOrder ? extendLease(db, lease) : endOrder(db, lease)
}

/** Publishes challenges on the edge and nameservers. Leaves published ones unchanged. */
export async function publishChallenges(
  db: Db,
  lease: Lease,
  challenges: Challenge[],
  platformZone: string | null,
): Promise<void> {
  await inTransaction(db, async (db) => {
    // The nameservers create this row at startup, which on another machine may be later.
    if (platformZone) await db.platformZone.createMany({ data: [{ name: platformZone }], skipDuplicates: true })
    const { subject } = lease
    if (!(await extendLease(db, lease))) throw new LostLease()
    const published = await db.acmeChallenge.findMany({ where: { subject }, select: { type: true, token: true } })
    const added = challenges.filter(
      ({ type, token }) => !published.some((other) => other.type === type && other.token === token),
    )
    await db.acmeChallenge.createMany({ data: added.map((challenge) => ({ id: newId('chl'), subject, ...challenge })) })
    await incrementSerials(db, added)
  })
}

// Authorities keep an order for at most a week.
const maxAgeMs = 7 * 86_400_000
// Longer than any live lease, even with clock skew between machines.
const unleasedMs = 3_600_000

/** Deletes abandoned orders. */
export async function deleteOldOrders(db: Db): Promise<void> {
  const before = (ageMs: number) => ({ lt: new Date(Date.now() - ageMs) })
  await deleteOrders(db, {
    createdAt: before(maxAgeMs),
    OR: [{ leasedUntil: null }, { leasedUntil: before(unleasedMs) }],
  })
}

/** Deletes orders with their challenges and returns the number of orders. */
async function deleteOrders(db: Db, where: Prisma.AcmeOrderWhereInput): Promise<number> {
  return inTransaction(db, async (db) => {
    const published = await db.acmeChallenge.findMany({ where: { order: where }, select: { zone: true } })
    // The foreign key of the challenges deletes them too.
    const { count } = await db.acmeOrder.deleteMany({ where })
    if (count > 0) await incrementSerials(db, published)
    return count
  })
}

/** Increments the serials of zones with changed challenges, so secondaries transfer them. */
async function incrementSerials(db: Db, challenges: { zone: string | null }[]): Promise<void> {
  const zones = [...new Set(challenges.flatMap(({ zone }) => zone ?? []))]
  if (zones.length === 0) return
  const change = { where: { name: { in: zones } }, data: { serial: { increment: 1 } } }
  await db.platformZone.updateMany(change)
  await db.domain.updateMany(change)
}
