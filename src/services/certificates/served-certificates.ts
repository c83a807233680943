// Certificates in service and http-01 challenges, as the edge reads them.
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

/** The ids of the platform's own certificates, which are few. */
export function readPlatformCertificateStates(db: Db): Promise<ServedCertificateState[]> {
  return selectPlatformStates(db, {})
}

/** The next `limit` domains by name, with the id of their certificate, which is enough to detect changes. */
export function readDomainCertificateStates(db: Db, after: string, limit: number): Promise<ServedCertificateState[]> {
  return selectDomainStates(db, { after, limit })
}

/** Certificates by name. Names without a result have no certificate in service. */
export function readServedCertificates(db: Db, names: string[]): Promise<ServedCertificateRow[]> {
  return selectServed(db, { names })
}

/** The challenges to serve at `/.well-known/acme-challenge/<token>`. */
export function readHttpChallenges(db: Db): Promise<Pick<AcmeChallenge, 'token' | 'value'>[]> {
  return db.acmeChallenge.findMany({ where: { type: 'http-01' }, select: { token: true, value: true } })
}
