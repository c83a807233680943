// What certificates of domains and of the platform have in common: whom they are for, how they change, their rows.
import type { Certificate } from '../../generated/client.ts'
import type { JobKinds } from '../../jobs/kinds.ts'
import type { Db } from '../../platform/database/database.ts'
import type { DomainView } from '../domains/index.ts'
import type { Lease } from './orders.ts'

/** `chain` is PEM, the certificate itself first; `directory` is empty for the development CA. */
export type InService = Omit<Certificate, 'key' | 'accountId' | 'serial' | 'createdAt'>

/** One that a certificate is for: a domain, or a purpose of the platform. */
export type Holder = {
  /** Key of its job. */
  key: string
  names: string[]
  /** Where our nameservers answer for it, if they do. */
  zone: string | null
  /** Whether it may have a certificate at all: a domain must be verified, and its account not suspended. */
  entitled: boolean
  ssl: DomainView['ssl'] | null
  failures: number
  nextAttemptAt: Date | null
  certificate: InService | null
}

/** What one order may be for. `extraNames` are welcome on the certificate, but nobody waits for them. */
export type OrderScope = {
  subject: string
  accountId: string | null
  /** The first is the one whose job it is. */
  holders: [Holder, ...Holder[]]
  extraNames: string[]
}

/** `lookAgainAt`: when to ask the authority whether it wants the certificate renewed earlier. */
export type Issued = InService & { serial: string; sealedKey: Buffer; lookAgainAt: Date }

export type Failure = {
  message: string
  /** By the number of failures in a row, this one counted. */
  nextAttemptAt(failures: number): Date
  /** The next attempt goes on with the order. */
  keepsOrder: boolean
}

/** A certificate that is issued and renewed by jobs: that of a domain, or one of the platform's own. */
export type ManagedCertificate = {
  job: { key: string; payload: JobKinds['issue'] }
  /** Null if no holder is left. */
  find(): Promise<OrderScope | null>
  /** An attempt begins for these. */
  begin(holders: Holder[]): Promise<void>
  /** Puts a certificate into service in place of the one before; false if the lease is lost. */
  install(scope: OrderScope, lease: Lease, issued: Issued): Promise<boolean>
  /**
   * The attempt failed for these; false if the lease is lost. The certificate in service stays there. Without a lease,
   * no order was under way.
   */
  fail(holders: Holder[], lease: Lease | null, failure: Failure): Promise<boolean>
  /** The certificate in service has expired. */
  expire(): Promise<void>
}

/** Leaves the private key where it is. */
export const withInService = { inService: { omit: { key: true } } } as const

export async function addCertificate(db: Db, accountId: string | null, issued: Issued): Promise<string> {
  const { sealedKey, lookAgainAt: _, ...columns } = issued
  await db.certificate.create({ data: { accountId, key: Uint8Array.from(sealedKey), ...columns } })
  return issued.id
}

/** Neither a domain nor the platform refers to it. */
export const unused = { domains: { none: {} }, platforms: { none: {} } }

/** Deletes those of the certificates that nothing refers to any more. */
export async function dropSuperseded(db: Db, ids: string[]): Promise<void> {
  await db.certificate.deleteMany({ where: { id: { in: ids }, ...unused } })
}
