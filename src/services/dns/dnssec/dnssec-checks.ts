// Checks of the parent's DS records: what a check reads, how its result is written, and checks that got lost.

import type { Config } from '../../../config.ts'
import { isDsOf } from '../../../dns/dnssec/ds-texts.ts'
import { type Db, inTransaction } from '../../../platform/database/database.ts'
import { lockDomain, nameserversOf } from '../../domains/index.ts'
import { parentsOf } from '../../names/index.ts'
import { queueForgottenDnssec, selectSigningVersion, selectSigningWish } from '../sql/dnssec-statements.ts'
import { advance, maxTtlOf, readSigned, type StepOptions } from './dnssec-steps.ts'
import { isWanted, keysShown, type SignedDomain, type SigningOptions, strangeDs, viewDnssec } from './dnssec-view.ts'

// How often a check looks at a domain that others change meanwhile, before it locks it first.
const maxLooks = 3

/** What the servers of the parent show of a name: DS records as texts. */
export type ParentAnswer = {
  /** What most of them show. */
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
  /** The zone above, with its nameservers, if it is on those here; null if it isn't. */
  hostedAbove: { name: string; nameservers: string[] } | null
  /** Nothing is signed below a zone that isn't. */
  waitsForAbove: boolean
  nameservers: string[]
  /** The keys that the nameservers have to show, as values of DNSKEY records. */
  keys: string[]
}

/** Null if the domain is gone, or its parent is not to be asked. */
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
  const [nearest] = above.sort((one, other) => other.name.length - one.name.length)
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
    foreign: shown.length === 0 && strangeDs(row, ds).length > 0,
    ttl,
  }
}

/** Writes what the parent showed, or why it could not be asked, and takes the step that follows. */
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
  const look = async (db: Db) => {
    const [version] = await selectSigningVersion(db, { domainId: id })
    const row = version ? await readSigned(db, id) : null
    return row && { row, ...version!, maxTtl: await maxTtlOf(db, id) }
  }
  for (let looks = 1; ; looks++) {
    // Read before the domain is locked, because changes of its records wait for the lock.
    const seen = looks <= maxLooks ? await look(db) : null
    if (looks <= maxLooks && !seen) return
    const isDone = await inTransaction(db, async (db) => {
      await lockDomain(db, { accountId, name })
      await options.guard(db)
      const now = seen ?? (await look(db))
      if (!now) return true
      if (seen && (await selectSigningVersion(db, { domainId: id }))[0]?.version !== seen.version) return false
      await write(db, now.row, now.maxTtl)
      return true
    })
    if (isDone) return
  }
}

/** The job by which the signing of a domain begins or ends, after what proves its owner has changed; null if it does not. */
export async function signingJob(db: Db, options: SigningOptions, id: string) {
  const [row] = await selectSigningWish(db, { domainId: id })
  if (!row || row.name.startsWith('*')) return null
  const isSigned = row.dnssecState !== 'unsigned' && row.dnssecState !== 'leaving'
  if (isWanted(options, row) === isSigned) return null
  // It is looked after already: it waits for the parent.
  return row.nextCheckAt ? null : { kind: 'dnssec' as const, key: id, payload: { domainId: id } }
}

/** The DS records among these that are of no key of the domain. */
export function foreignDs(
  name: string,
  keys: readonly { tag: number; publicKey: Uint8Array }[],
  ds: readonly string[],
) {
  return ds.filter((text) => !keys.some((key) => isDsOf(name, key, text)))
}

/** Queues the checks that are overdue and have no job; returns how many. */
export async function requeueForgottenSigning(db: Db): Promise<number> {
  return (await queueForgottenDnssec(db, {})).length
}
