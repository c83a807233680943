// What keeping certificates has in common, be they of domains or the platform's own: who wants one, and the rows themselves.
import { type Db, rows, sql } from '../db.ts'
import { newId } from '../ids.ts'
import type { JobKinds } from '../jobs/kinds.ts'
import type { Lease } from './acme.ts'
import type { DomainView } from './domains.ts'

export type InService = {
  id: string
  names: string[]
  /** PEM, the certificate itself first. */
  chain: string
  issuer: string
  notBefore: Date
  notAfter: Date
  renewAt: Date
  /** Empty for the development CA. */
  directory: string
}

/** One that a certificate is for: a domain, or a purpose of the platform. */
export type Party = {
  /** Key of its job. */
  key: string
  names: string[]
  /** Where our nameservers answer for it, if they do. */
  zone: string | null
  /** Whether it may have a certificate at all: a domain must be verified. */
  entitled: boolean
  ssl: DomainView['ssl'] | null
  failures: number
  nextAttemptAt: Date | null
  certificate: InService | null
}

/** What one order may be for. `extraNames` are welcome on the certificate, but nobody waits for them. */
export type Wanted = {
  subject: string
  accountId: string | null
  /** The first is the one whose job it is. */
  parties: [Party, ...Party[]]
  extraNames: string[]
}

/** `lookAgainAt`: when to ask the authority whether it wants the certificate renewed earlier. */
export type Issued = Omit<InService, 'id'> & { serial: string; sealedKey: Buffer; lookAgainAt: Date }

export type Failure = {
  message: string
  /** By the number of failures in a row, this one counted. */
  nextAttemptAt(failures: number): Date
}

/** Where certificates of one kind are kept. */
export type Ledger = {
  job: { key: string; payload: JobKinds['issue'] }
  /** Null if there is nobody left to want one. */
  find(): Promise<Wanted | null>
  /** An attempt begins for these. */
  begin(parties: Party[]): Promise<void>
  /** Puts a certificate into service in place of the one before; false if the lease is lost. */
  install(wanted: Wanted, lease: Lease, issued: Issued): Promise<boolean>
  /** The attempt failed for these. The one in service stays there. */
  fail(parties: Party[], lease: Lease | null, failure: Failure): Promise<void>
  /** The certificate in service is over. */
  expire(): Promise<void>
}

export const inServiceColumns = sql`c.id AS "certificateId", c.names, c.chain, c.issuer, c.not_before AS "notBefore",
  c.not_after AS "notAfter", c.renew_at AS "renewAt", c.directory`

export type InServiceRow = Omit<InService, 'id'> & { certificateId: string | null }

export function certificateOf(row: InServiceRow): InService | null {
  const { certificateId: id, names, chain, issuer, notBefore, notAfter, renewAt, directory } = row
  return id === null ? null : { id, names, chain, issuer, notBefore, notAfter, renewAt, directory }
}

export async function addCertificate(db: Db, accountId: string | null, issued: Issued): Promise<string> {
  const id = newId('crt')
  const { sealedKey, lookAgainAt: _, ...columns } = issued
  await db.certificate.create({ data: { id, accountId, key: Uint8Array.from(sealedKey), ...columns } })
  return id
}

/** Drops certificates that nothing refers to any more. */
export async function dropSuperseded(db: Db, ids: string[]): Promise<void> {
  await rows(
    db,
    sql`DELETE FROM certificate c WHERE c.id = ANY(${ids}::text[])
          AND NOT EXISTS (SELECT 1 FROM domain d WHERE d.certificate_id = c.id)
          AND NOT EXISTS (SELECT 1 FROM platform_certificate p WHERE p.certificate_id = c.id) RETURNING c.id`,
  )
}
