// Which certificates are in service, and what authorities want to see meanwhile: the queries behind those who serve them.
import { type Db, rows, sql } from '../db.ts'

/**
 * The certificate of one verified domain, whose name it is kept under, or one of the platform's own, which goes by the
 * first of its names.
 */
export type ServedCertificateState = { name: string; platform: boolean; id: string }

export type ServedCertificateRow = ServedCertificateState & {
  names: string[]
  /** PEM, the certificate itself first. */
  chain: string
  /** PEM, sealed. */
  key: Uint8Array
  notAfter: Date
}

export type ServedChallengeRow = { token: string; value: string }

// The platform keeps its old certificates for a while: of those that begin with the same name the newest counts.
const platformOrder = sql`c.names[1], c.created_at DESC, c.id DESC`

/** The platform's own certificates by their ids: there are few. */
export function readPlatformCertificateStates(db: Db): Promise<ServedCertificateState[]> {
  return rows<ServedCertificateState>(
    db,
    sql`SELECT DISTINCT ON (c.names[1]) c.names[1] AS name, true AS platform, c.id FROM certificate c
        WHERE c.account_id IS NULL AND c.names[1] IS NOT NULL ORDER BY ${platformOrder}`,
  )
}

/** The next `limit` domains that have a certificate in service, by name: enough to see what changed. */
export function readDomainCertificateStates(db: Db, after: string, limit: number): Promise<ServedCertificateState[]> {
  return rows<ServedCertificateState>(
    db,
    sql`SELECT d.name, false AS platform, d.certificate_id AS id FROM domain d
        WHERE d.verified AND d.certificate_id IS NOT NULL AND d.name > ${after} ORDER BY d.name LIMIT ${limit}::int`,
  )
}

/** Certificates by the names they are kept under. What does not come back is not in service. */
export async function readServedCertificates(db: Db, names: string[]): Promise<ServedCertificateRow[]> {
  const columns = sql`c.id, c.names, c.chain, c.key, c.not_after AS "notAfter"`
  return rows<ServedCertificateRow>(
    db,
    sql`(SELECT DISTINCT ON (c.names[1]) c.names[1] AS name, true AS platform, ${columns} FROM certificate c
          WHERE c.account_id IS NULL AND c.names[1] = ANY(${names}::text[]) ORDER BY ${platformOrder})
        UNION ALL SELECT d.name, false, ${columns} FROM domain d JOIN certificate c ON c.id = d.certificate_id
          WHERE d.verified AND d.name = ANY(${names}::text[])`,
  )
}

/** What is to be shown over HTTP under `/.well-known/acme-challenge/<token>`. */
export function readHttpChallenges(db: Db): Promise<ServedChallengeRow[]> {
  return rows<ServedChallengeRow>(db, sql`SELECT token, value FROM acme_challenge WHERE type = 'http-01'`)
}
