// Checks of the parent's DS records: reading the zone, settling the result, and requeuing lost checks.

import type { Config } from '../../../config.ts'
import { isDsOf } from '../../../dns/dnssec/ds-texts.ts'
import { type Db, inTransaction } from '../../../platform/database/database.ts'
import { lockDomain, nameserversOf } from '../../domains/index.ts'
import { parentsOf } from '../../names/index.ts'
import { queueForgottenDnssec, selectSigningVersion, selectSigningWish } from '../sql/dnssec-statements.ts'
import { advance, maxTtlOf, readSigned, type StepOptions } from './dnssec-steps.ts'
import { foreignDsOf, isWanted, keysShown, type SignedDomain, type SigningOptions, viewDnssec } from './dnssec-view.ts'

// How often a check retries if the domain changes concurrently, before it reads under the lock.
const maxAttempts = 3

/** The DS records of a name that the parent's servers show, as texts. */
export type ParentAnswer = {
  /** Shown by most servers. */
  ds: string[]
  everywhere: string[]
  anywhere: string[]
  /** In seconds. */
  ttl: number
}

export type SigningCheck = {
  id: string
  accountId: string
  name: string
  /** The parent zone with its nameservers, if it is hosted here. */
  hostedAbove: { name: string; nameservers: string[] } | null
  /** Whether signing waits because the parent is unsigned. */
  waitsForAbove: boolean
  nameservers: string[]
  /** The keys that the nameservers must show, as values of DNSKEY records. */
  keys: string[]
}

/** Returns null if the domain was deleted or its parent need not be queried. */
export async function readSigningCheck(
  db: Db,
  options: SigningOptions & Pick<Config, 'nameservers'>,
  id: string,
): Promise<SigningCheck | null> {
  const row = await readSigned(db, id)
  if (!row) return null
  if (row.dnssecState === 'unsigned' && !isWanted(options, row)) {
    await db.zoneSigning.updateMany({ where: { domainId: id }, data: { nextCheckAt: null } })
    return null
  }
  const { accountId, name } = row
  const above = await db.domain.findMany({
    where: { name: { in: parentsOf(name) }, verified: true, method: 'nameservers' },
    select: { name: true, nameservers: true, dnssecState: true },
  })
  const pool = options.nameservers
  const [nearest] = above.sort((a, b) => b.name.length - a.name.length)
  return {
    id,
    accountId,
    name,
    hostedAbove: nearest ? { name: nearest.name, nameservers: nameserversOf(pool, nearest.nameservers) } : null,
    waitsForAbove: row.dnssecState === 'unsigned' && nearest?.dnssecState === 'unsigned',
    nameservers: nameserversOf(pool, row.nameservers),
    keys: viewDnssec(options, row).dnskey,
  }
}

function sightingOf(row: SignedDomain, { ds, everywhere, anywhere, ttl }: ParentAnswer) {
  const shown = keysShown(row, ds)
  return {
    shown,
    everywhere: keysShown(row, everywhere),
    anywhere: keysShown(row, anywhere),
    foreign: shown.length === 0 && foreignDsOf(row, ds).length > 0,
    ttl,
  }
}

/** Stores the parent's answer, or why there is none, and takes the next step. */
export async function settleSigning(
  db: Db,
  options: StepOptions & /** Throws if another worker has the job, and writes it. */ { guard(db: Db): Promise<void> },
  { id, accountId, name, hostedAbove }: SigningCheck,
  {
    found,
    unserved,
  }: { found: ParentAnswer | { fault: string } /** A nameserver without the keys. */; unserved: string | null },
): Promise<void> {
  const write = async (db: Db, row: SignedDomain, maxTtl: number) => {
    const isUnknown = 'fault' in found
    const missing = unserved === null ? null : `${unserved} does not show the keys of the zone yet.`
    const hostedParent = hostedAbove?.name ?? null
    const checked = isUnknown
      ? { hostedParent, fault: found.fault }
      : { hostedParent, checkedAt: new Date(), parentDs: found.ds, fault: missing }
    const parent = isUnknown ? null : sightingOf(row, found)
    await advance(db, options, row, { parent, served: unserved === null, checked, maxTtl })
  }
  const readState = async (db: Db) => {
    const [version] = await selectSigningVersion(db, { domainId: id })
    const row = version ? await readSigned(db, id) : null
    return row && { row, ...version!, maxTtl: await maxTtlOf(db, id) }
  }
  for (let attempt = 1; ; attempt++) {
    // Read before locking the domain, because changes of its records wait for the lock.
    const seen = attempt <= maxAttempts ? await readState(db) : null
    if (attempt <= maxAttempts && !seen) return
    const isDone = await inTransaction(db, async (db) => {
      await lockDomain(db, { accountId, name })
      await options.guard(db)
      const now = seen ?? (await readState(db))
      if (!now) return true
      if (seen && (await selectSigningVersion(db, { domainId: id }))[0]?.version !== seen.version) return false
      await write(db, now.row, now.maxTtl)
      return true
    })
    if (isDone) return
  }
}

/** The job that starts or ends the signing of a domain after its verification has changed, or null. */
export async function signingJob(db: Db, options: SigningOptions, id: string) {
  const [row] = await selectSigningWish(db, { domainId: id })
  if (!row || row.name.startsWith('*')) return null
  const isSigned = row.dnssecState !== 'unsigned' && row.dnssecState !== 'leaving'
  if (isWanted(options, row) === isSigned) return null
  // With a next check, a job exists already.
  return row.nextCheckAt ? null : { kind: 'dnssec' as const, key: id, payload: { domainId: id } }
}

/** The DS records that match no key of the domain. */
export function foreignDs(
  name: string,
  keys: readonly { tag: number; publicKey: Uint8Array }[],
  ds: readonly string[],
) {
  return ds.filter((text) => !keys.some((key) => isDsOf(name, key, text)))
}

/** Queues overdue checks without a job and returns their number. */
export async function requeueForgottenSigning(db: Db): Promise<number> {
  return (await queueForgottenDnssec(db, {})).length
}
