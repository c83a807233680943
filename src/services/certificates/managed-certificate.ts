// The common interface of the certificates of domains and of the platform, and helpers for their rows.
import type { Certificate } from '../../generated/client.ts'
import type { JobKinds } from '../../jobs/kinds.ts'
import type { Db } from '../../platform/database/database.ts'
import type { DomainView } from '../domains/index.ts'
import type { Lease } from './orders.ts'

/** `chain` is PEM, the certificate itself first; `directory` is empty for the development CA. */
export type InService = Omit<Certificate, 'key' | 'accountId' | 'serial' | 'createdAt'>

/** The holder of a certificate: a domain, or a purpose of the platform. */
export type Holder = {
  /** The key of its job. */
  key: string
  names: string[]
  /** Its zone on our nameservers, if any. */
  zone: string | null
  /** Whether it may have a certificate: a domain must be verified and its account not suspended. */
  entitled: boolean
  ssl: DomainView['ssl'] | null
  failures: number
  nextAttemptAt: Date | null
  certificate: InService | null
}

/** The holders of one order. `extraNames` are optional names on the certificate. */
export type OrderScope = {
  subject: string
  accountId: string | null
  /** The first one is the holder whose job runs. */
  holders: [Holder, ...Holder[]]
  extraNames: string[]
}

/** `lookAgainAt`: when to ask the authority whether it wants the certificate renewed earlier. */
export type Issued = InService & { serial: string; sealedKey: Buffer; checkRenewalAt: Date }

export type Failure = {
  message: string
  /** `failures` is the number of failures in a row, including this one. */
  nextAttemptAt(failures: number): Date
  /** Whether the next attempt continues the order. */
  keepsOrder: boolean
}

/** A certificate of a domain or of the platform that jobs issue and renew. */
export type ManagedCertificate = {
  job: { key: string; payload: JobKinds['issue'] }
  /** Null if no holder is left. */
  find(): Promise<OrderScope | null>
  /** Records the start of an attempt. */
  begin(holders: Holder[]): Promise<void>
  /** Puts a new certificate into service; returns false if the lease is lost. */
  install(scope: OrderScope, lease: Lease, issued: Issued): Promise<boolean>
  /**
   * Records a failed attempt; returns false if the lease is lost. The current certificate stays in service. `lease` is
   * null if the attempt failed before an order.
   */
  fail(holders: Holder[], lease: Lease | null, failure: Failure): Promise<boolean>
  /** Records that the certificate in service has expired. */
  expire(): Promise<void>
}

/** Selects the certificate without its private key. */
export const withInService = { inService: { omit: { key: true } } } as const

export async function addCertificate(db: Db, accountId: string | null, issued: Issued): Promise<string> {
  const { sealedKey, checkRenewalAt: _, ...columns } = issued
  await db.certificate.create({ data: { accountId, key: Uint8Array.from(sealedKey), ...columns } })
  return issued.id
}

/** Matches certificates that neither a domain nor the platform uses. */
export const unused = { domains: { none: {} }, platforms: { none: {} } }

/** Deletes the given certificates unless they are still in use. */
export async function deleteSuperseded(db: Db, ids: string[]): Promise<void> {
  await db.certificate.deleteMany({ where: { id: { in: ids }, ...unused } })
}
