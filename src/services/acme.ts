// ACME in rows: the account at an authority, orders with the lease of whoever works on them, and their challenges.
import { type Db, inTransaction, rows, sql } from '../db.ts'
import { newId } from '../ids.ts'

/** `url` is empty until the authority has made the account. */
export type AcmeAccount = { url: string; key: Uint8Array }

export type AcmeOrder = {
  subject: string
  names: string[]
  directory: string
  /** Empty until the authority has answered. */
  url: string
  key: Uint8Array | null
}

/** Whoever works on an order; nobody else may touch it while the lease lives. */
export type Lease = { subject: string; holder: string }

export type Challenge = {
  type: 'http-01' | 'dns-01'
  /** The host that is proved, without a star. */
  name: string
  /** Zone in which the nameservers show it. */
  zone: string | null
  token: string
  value: string
}

// Three missed heartbeats end it, as with jobs.
export const leaseSeconds = 30

/**
 * The account at a directory; the first to ask leaves its key, and everybody uses that one. An authority answers the
 * second registration of a key with the account it has, so ten workers that register at once still make one.
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
  await rows(db, sql`UPDATE acme_account SET url = ${url} WHERE directory = ${directory} RETURNING directory`)
}

/** Takes the order of a subject, made if there is none; null while another holds it. */
export async function leaseOrder(db: Db, lease: Lease, directory: string): Promise<AcmeOrder | null> {
  const [order] = await rows<AcmeOrder>(
    db,
    sql`INSERT INTO acme_order (subject, names, directory, leased_by, leased_until)
        VALUES (${lease.subject}, '{}', ${directory}, ${lease.holder}, now() + ${leaseSeconds}::int * interval '1 second')
        ON CONFLICT (subject) DO UPDATE SET leased_by = excluded.leased_by, leased_until = excluded.leased_until
        WHERE acme_order.leased_until IS NULL OR acme_order.leased_until < now()
        RETURNING subject, names, directory, url, key`,
  )
  return order ?? null
}

/** False once the order is somebody else's. */
export async function extendLease(db: Db, { subject, holder }: Lease): Promise<boolean> {
  const held = await rows(
    db,
    sql`UPDATE acme_order SET leased_until = now() + ${leaseSeconds}::int * interval '1 second'
        WHERE subject = ${subject} AND leased_by = ${holder} RETURNING subject`,
  )
  return held.length > 0
}

/** Gives the order back as it is, for whoever goes on with it; one that never reached the authority is dropped. */
export async function releaseOrder(db: Db, { subject, holder }: Lease): Promise<void> {
  await rows(
    db,
    sql`WITH dropped AS (DELETE FROM acme_order WHERE subject = ${subject} AND leased_by = ${holder} AND url = '')
        UPDATE acme_order SET leased_by = NULL, leased_until = NULL
        WHERE subject = ${subject} AND leased_by = ${holder} AND url <> '' RETURNING subject`,
  )
}

/** Begins anew: whatever order the row stood for is forgotten, with its challenges. */
export async function beginOrder(
  db: Db,
  lease: Lease,
  order: { names: string[]; directory: string; key: Buffer },
): Promise<void> {
  await inTransaction(db, async (db) => {
    await withdrawChallenges(db, [lease.subject])
    const { names, directory } = order
    await db.acmeOrder.updateMany({
      where: { subject: lease.subject, leasedBy: lease.holder },
      data: { names, directory, url: '', key: Uint8Array.from(order.key), createdAt: new Date() },
    })
  })
}

export async function setOrderUrl(db: Db, { subject, holder }: Lease, url: string): Promise<void> {
  await rows(
    db,
    sql`UPDATE acme_order SET url = ${url} WHERE subject = ${subject} AND leased_by = ${holder} RETURNING subject`,
  )
}

/** The order is over, one way or the other. False if it is not the caller's any more: then nothing may follow. */
export async function endOrder(db: Db, { subject, holder }: Lease): Promise<boolean> {
  return inTransaction(db, async (db) => {
    const held = await rows(
      db,
      sql`SELECT subject FROM acme_order WHERE subject = ${subject} AND leased_by = ${holder} FOR UPDATE`,
    )
    if (held.length === 0) return false
    await withdrawChallenges(db, [subject])
    await rows(db, sql`DELETE FROM acme_order WHERE subject = ${subject} RETURNING subject`)
    return true
  })
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
    const batch = challenges.map((challenge) => ({ id: newId('chl'), ...challenge }))
    const shown = await rows<{ zone: string | null }>(
      db,
      sql`INSERT INTO acme_challenge (id, subject, type, name, zone, token, value)
          SELECT c.id, o.subject, c.type, c.name, c.zone, c.token, c.value
          FROM jsonb_to_recordset(${JSON.stringify(batch)}::jsonb)
            AS c(id text, type text, name text, zone text, token text, value text)
          JOIN acme_order o ON o.subject = ${lease.subject} AND o.leased_by = ${lease.holder}
          WHERE NOT EXISTS (SELECT 1 FROM acme_challenge e WHERE e.subject = o.subject AND e.token = c.token AND e.type = c.type)
          RETURNING zone`,
    )
    await moveSerials(db, shown)
  })
}

/** Orders that nobody will finish: authorities keep one for a week at most. */
export async function dropOldOrders(db: Db): Promise<void> {
  await inTransaction(db, async (db) => {
    const old = await rows<{ subject: string }>(
      db,
      sql`SELECT subject FROM acme_order WHERE created_at < now() - interval '7 days'
            AND (leased_until IS NULL OR leased_until < now()) FOR UPDATE`,
    )
    const subjects = old.map(({ subject }) => subject)
    if (subjects.length === 0) return
    await withdrawChallenges(db, subjects)
    await rows(db, sql`DELETE FROM acme_order WHERE subject = ANY(${subjects}::text[]) RETURNING subject`)
  })
}

async function withdrawChallenges(db: Db, subjects: string[]): Promise<void> {
  const gone = await rows<{ zone: string | null }>(
    db,
    sql`DELETE FROM acme_challenge WHERE subject = ANY(${subjects}::text[]) RETURNING zone`,
  )
  await moveSerials(db, gone)
}

/** Challenges are part of the zones that show them, so secondaries must hear of each that comes or goes. */
async function moveSerials(db: Db, challenges: { zone: string | null }[]): Promise<void> {
  const zones = [...new Set(challenges.flatMap(({ zone }) => zone ?? []))]
  if (zones.length === 0) return
  await rows(
    db,
    sql`WITH own AS (UPDATE platform_zone SET serial = serial + 1 WHERE name = ANY(${zones}::text[]))
        UPDATE domain SET serial = serial + 1 WHERE name = ANY(${zones}::text[]) RETURNING id`,
  )
}
