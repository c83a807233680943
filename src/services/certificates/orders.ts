// ACME in rows: the account at an authority, orders with the lease of whoever works on them, and their challenges.
import type { AcmeAccount, Prisma } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { LostLease } from '../../platform/database/lease.ts'
import type { ValuesOf } from '../../platform/database/statement.ts'
import { newId } from '../../platform/ids.ts'
import { renewOrder, type takenOrder, takeOrder } from './statements.ts'

/** As it was when it was leased. `url` is empty until the authority has answered. */
export type AcmeOrder = ValuesOf<typeof takenOrder>

/** Whoever works on an order; nobody else may touch it while the lease lives. */
export type Lease = { subject: string; worker: string }

export type Challenge = {
  type: 'http-01' | 'dns-01'
  /** The host that is proved, without a star. */
  name: string
  /** Zone in which the nameservers show it. */
  zone: string | null
  token: string
  value: string
}

/**
 * The account at a directory; its `url` is empty until the authority has made it. The first to ask leaves its key, and
 * everybody uses that one. An authority answers the second registration of a key with the account it has, so ten
 * workers that register at once still make one.
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

/** Takes the order of a subject, made if there is none; null while another holds it. */
export async function leaseOrder(db: Db, lease: Lease, directory: string): Promise<AcmeOrder | null> {
  const [order] = await takeOrder(db, { ...lease, directory })
  return order ?? null
}

/** False once the order is somebody else's. */
export async function extendLease(db: Db, lease: Lease): Promise<boolean> {
  return (await renewOrder(db, lease)).length > 0
}

const heldBy = ({ subject, worker }: Lease) => ({ subject, leasedBy: worker })

/** Gives the order back as it is, for whoever goes on with it; one that never reached the authority is deleted. */
export async function releaseOrder(db: Db, lease: Lease): Promise<void> {
  await db.acmeOrder.deleteMany({ where: { ...heldBy(lease), url: '' } })
  await db.acmeOrder.updateMany({ where: heldBy(lease), data: { leasedBy: null, leasedUntil: null } })
}

/** Changes an order that is the caller's; throws if it is somebody else's by now. */
async function changeOrder(db: Db, lease: Lease, data: Prisma.AcmeOrderUpdateManyMutationInput): Promise<void> {
  const { count } = await db.acmeOrder.updateMany({ where: heldBy(lease), data })
  if (count === 0) throw new LostLease()
}

/** Begins anew: whatever order the row stood for is forgotten, with its challenges. */
export async function beginOrder(
  db: Db,
  lease: Lease,
  { names, directory, key }: { names: string[]; directory: string; key: Buffer },
): Promise<void> {
  await inTransaction(db, async (db) => {
    const { subject } = lease
    await changeOrder(db, lease, { names, directory, url: '', key: Uint8Array.from(key), createdAt: new Date() })
    const shown = await db.acmeChallenge.findMany({ where: { subject }, select: { zone: true } })
    await db.acmeChallenge.deleteMany({ where: { subject } })
    await moveSerials(db, shown)
  })
}

export async function setOrderUrl(db: Db, lease: Lease, url: string): Promise<void> {
  await changeOrder(db, lease, { url })
}

/** The order is over, one way or the other. False if it is not the caller's any more: then nothing may follow. */
export async function endOrder(db: Db, lease: Lease): Promise<boolean> {
  return (await deleteOrders(db, heldBy(lease))) > 0
}

/** The attempt is over, and so is the order, unless it is kept for the next one. False as for endOrder. */
export function leaveOrder(db: Db, lease: Lease, { keepsOrder }: { keepsOrder: boolean }): Promise<boolean> {
  return keepsOrder ? extendLease(db, lease) : endOrder(db, lease)
}

/** Shows challenges to whoever the authority will ask. Those that are shown already stay as they are. */
export async function publishChallenges(
  db: Db,
  lease: Lease,
  challenges: Challenge[],
  platformZone: string | null,
): Promise<void> {
  await inTransaction(db, async (db) => {
    // The nameservers make the row when they start, which on another machine may be later than this.
    if (platformZone) await db.platformZone.createMany({ data: [{ name: platformZone }], skipDuplicates: true })
    const { subject } = lease
    if (!(await extendLease(db, lease))) throw new LostLease()
    const shown = await db.acmeChallenge.findMany({ where: { subject }, select: { type: true, token: true } })
    const added = challenges.filter(
      ({ type, token }) => !shown.some((other) => other.type === type && other.token === token),
    )
    await db.acmeChallenge.createMany({ data: added.map((challenge) => ({ id: newId('chl'), subject, ...challenge })) })
    await moveSerials(db, added)
  })
}

// Authorities keep an order for a week at most.
const oldMs = 7 * 86_400_000
// Longer than any lease that is still renewed, however far the clocks of two machines are apart.
const unheldMs = 3_600_000

/** Deletes orders that nobody will finish. */
export async function dropOldOrders(db: Db): Promise<void> {
  const before = (ageMs: number) => ({ lt: new Date(Date.now() - ageMs) })
  await deleteOrders(db, {
    createdAt: before(oldMs),
    OR: [{ leasedUntil: null }, { leasedUntil: before(unheldMs) }],
  })
}

/** Deletes orders with their challenges, and tells how many orders there were. */
async function deleteOrders(db: Db, where: Prisma.AcmeOrderWhereInput): Promise<number> {
  return inTransaction(db, async (db) => {
    const shown = await db.acmeChallenge.findMany({ where: { order: where }, select: { zone: true } })
    // The foreign key of the challenges deletes them too.
    const { count } = await db.acmeOrder.deleteMany({ where })
    if (count > 0) await moveSerials(db, shown)
    return count
  })
}

/** Challenges are part of the zones that show them, so secondaries must hear of each that comes or goes. */
async function moveSerials(db: Db, challenges: { zone: string | null }[]): Promise<void> {
  const zones = [...new Set(challenges.flatMap(({ zone }) => zone ?? []))]
  if (zones.length === 0) return
  const change = { where: { name: { in: zones } }, data: { serial: { increment: 1 } } }
  await db.platformZone.updateMany(change)
  await db.domain.updateMany(change)
}
