// Checks of the parent's DS records: what a check reads, how its result is written, and checks that got lost.

import type { Config } from '../../config.ts'
import { isDsOf } from '../../dns/dnssec/ds-texts.ts'
import { enqueue } from '../../jobs/queue.ts'
import { type Db, inTransaction } from '../../platform/database.ts'
import { parentsOf } from '../domains/names.ts'
import { nameserversOf } from '../domains/nameservers.ts'
import { lockDomain } from '../domains/statements.ts'
import { queueForgottenDnssec } from './dnssec-statements.ts'
import { advance, readSigned, type StepOptions } from './dnssec-steps.ts'
import { isWanted, keysShown, type SignedDomain, type SigningOptions, viewDnssec } from './dnssec-view.ts'

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
  /** The zone above that is on the nameservers here; null if there is none. */
  hostedAbove: string | null
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
    select: { name: true },
  })
  const [nearest = null] = above.map(({ name }) => name).sort((one, other) => other.length - one.length)
  const nameservers = nameserversOf(options.nameservers, row.nameservers)
  return { id, accountId, name, hostedAbove: nearest, nameservers, keys: viewDnssec(options, row).dnskey }
}

function sightingOf(row: SignedDomain, { ds, everywhere, anywhere, ttl }: ParentAnswer) {
  const shown = keysShown(row, ds)
  return {
    shown,
    everywhere: keysShown(row, everywhere),
    anywhere: keysShown(row, anywhere),
    foreign: ds.length > 0 && shown.length === 0,
    ttl,
  }
}

/** Writes what the parent showed, or why it could not be asked, and takes the step that follows. */
export async function settleSigning(
  db: Db,
  options: StepOptions & /** Throws if another worker has the job, and writes it. */ { guard(db: Db): Promise<void> },
  { id, accountId, name }: SigningCheck,
  {
    found,
    unserved,
  }: { found: ParentAnswer | { fault: string } /** A nameserver without the keys. */; unserved: string | null },
): Promise<void> {
  await inTransaction(db, async (db) => {
    await lockDomain(db, { accountId, name })
    await options.guard(db)
    const row = await readSigned(db, id)
    if (!row) return
    const isUnknown = 'fault' in found
    const missing = unserved === null ? null : `${unserved} does not show the keys of the zone yet.`
    const checked = isUnknown ? { fault: found.fault } : { checkedAt: new Date(), parentDs: found.ds, fault: missing }
    const parent = isUnknown ? null : sightingOf(row, found)
    await advance(db, options, row, { parent, served: unserved === null, checked })
  })
}

/** Has the signing of a domain begin or end, after what proves its owner has changed. */
export async function queueSigning(db: Db, options: SigningOptions, id: string): Promise<void> {
  const row = await db.domain.findUnique({
    where: { id },
    select: { name: true, dnssec: true, dnssecState: true, verified: true, method: true, signing: true },
  })
  if (!row || row.name.startsWith('*')) return
  const isSigned = row.dnssecState !== 'unsigned' && row.dnssecState !== 'leaving'
  if (isWanted(options, row) === isSigned) return
  // It is looked after already: it waits for the parent.
  if (row.signing?.nextCheckAt) return
  await enqueue(db, { kind: 'dnssec', key: id, payload: { domainId: id } })
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
