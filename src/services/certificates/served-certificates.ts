// Which certificates are in service, and which http-01 challenges are shown: what those who serve them read.
import type { AcmeChallenge } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import type { ValuesOf } from '../../platform/database/statement.ts'
import {
  selectDomainStates,
  selectPlatformStates,
  selectServed,
  type servedCertificate,
  type servedState,
} from './statements.ts'

export type ServedCertificateState = ValuesOf<typeof servedState>
export type ServedCertificateRow = ValuesOf<typeof servedCertificate>

/** The platform's own certificates by their ids: there are few. */
export function readPlatformCertificateStates(db: Db): Promise<ServedCertificateState[]> {
  return selectPlatformStates(db, {})
}

/** The next `limit` domains that have a certificate in service, by name: enough to see what changed. */
export function readDomainCertificateStates(db: Db, after: string, limit: number): Promise<ServedCertificateState[]> {
  return selectDomainStates(db, { after, limit })
}

/** Certificates by the names they are kept under. What does not come back is not in service. */
export function readServedCertificates(db: Db, names: string[]): Promise<ServedCertificateRow[]> {
  return selectServed(db, { names })
}

/** What is to be shown over HTTP under `/.well-known/acme-challenge/<token>`. */
export function readHttpChallenges(db: Db): Promise<Pick<AcmeChallenge, 'token' | 'value'>[]> {
  return db.acmeChallenge.findMany({ where: { type: 'http-01' }, select: { token: true, value: true } })
}
