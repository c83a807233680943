// Certificates of domains in rows: who wants one, which is in service, and how an attempt ended.
import type { Config } from '../config.ts'
import { type Db, inTransaction, rows, type Sql, sql } from '../db.ts'
import { enqueue } from '../jobs/queue.ts'
import { endOrder, type Lease } from './acme.ts'
import {
  addCertificate,
  certificateOf,
  dropSuperseded,
  type Failure,
  type InServiceRow,
  type Issued,
  inServiceColumns,
  type Ledger,
  type Party,
  type Wanted,
} from './certificate-ledger.ts'
import { hostOf, isWildcard } from './domain-names.ts'
import { changeSsl, noteCertificate } from './domain-states.ts'
import type { CertificateView, DomainView } from './domains.ts'
import { generatedRecords } from './zones.ts'

type DomainRow = InServiceRow & {
  id: string
  accountId: string
  name: string
  verified: boolean
  ssl: DomainView['ssl']
  failures: number
  face: CertificateView | null
  /** The domain or one above it is delegated to our nameservers. */
  hosted: boolean
}

function readDomains(db: Db, which: Sql): Promise<DomainRow[]> {
  return rows<DomainRow>(
    db,
    sql`SELECT d.id, d.account_id AS "accountId", d.name, d.verified, d.ssl, d.certificate_failures AS failures,
          d.certificate AS face, ${inServiceColumns},
          EXISTS (SELECT 1 FROM domain z WHERE z.account_id = d.account_id AND z.verified AND z.method = 'nameservers'
            AND z.name NOT LIKE '*%' AND right('.' || d.name, length(z.name) + 1) = '.' || z.name) AS hosted
        FROM domain d LEFT JOIN certificate c ON c.id = d.certificate_id WHERE ${which}`,
  )
}

function partyOf(row: DomainRow): Party {
  return {
    key: row.id,
    names: [row.name],
    // The nameservers have a zone of its own for every domain, which comes before that of a domain above it.
    zone: row.hosted ? hostOf(row.name) : null,
    entitled: row.verified,
    ssl: row.ssl,
    failures: row.failures,
    nextAttemptAt: row.face?.nextAttemptAt ? new Date(row.face.nextAttemptAt) : null,
    certificate: certificateOf(row),
  }
}

/** A host and its www are one: `example.com` for both. What is below another www stands for itself. */
function baseOf(name: string): string {
  return /^www\.(?!www\.)/.test(name) ? name.slice(4) : name
}

/** www answers with the edge where the zone says nothing about it and nobody has attached it. */
async function hasGeneratedWww(db: Db, config: Config, base: DomainRow): Promise<boolean> {
  if (!base.hosted || isWildcard(base.name) || base.name.startsWith('www.')) return false
  const [attached] = await rows(db, sql`SELECT 1 FROM domain WHERE name = ${`www.${base.name}`}`)
  if (attached) return false
  const records = await rows<{ name: string; type: string }>(
    db,
    sql`SELECT name, type FROM dns_record WHERE domain_id = ${base.id} AND name = 'www'`,
  )
  // A delegation takes the name out of our hands.
  if (records.some(({ type }) => type === 'NS')) return false
  return generatedRecords(config, records).some(({ name }) => name === 'www')
}

export function domainLedger(db: Db, config: Config, domainId: string): Ledger {
  async function find(): Promise<Wanted | null> {
    const [own] = await readDomains(db, sql`d.id = ${domainId}`)
    if (!own) return null
    const base = baseOf(own.name)
    const both = [base, `www.${base}`].filter((name) => name !== own.name)
    const others = await readDomains(
      db,
      sql`d.account_id = ${own.accountId} AND d.name = ANY(${both}::text[]) AND d.verified`,
    )
    const apex = [own, ...others].find(({ name }) => name === base)
    const withWww = apex !== undefined && (await hasGeneratedWww(db, config, apex))
    return {
      subject: `${own.accountId} ${base}`,
      accountId: own.accountId,
      parties: [partyOf(own), ...others.map(partyOf)],
      extraNames: withWww ? [`www.${base}`] : [],
    }
  }

  async function install(wanted: Wanted, lease: Lease, issued: Issued): Promise<boolean> {
    return inTransaction(db, async (db) => {
      if (!(await endOrder(db, lease))) return false
      // Whoever was deleted or lost the ownership meanwhile gets nothing.
      const ids = wanted.parties.map(({ key }) => key)
      const served = (await readDomains(db, sql`d.id = ANY(${ids}::text[]) AND d.verified`)).filter(({ name }) =>
        issued.names.includes(name),
      )
      if (served.length === 0) return true
      const id = await addCertificate(db, wanted.accountId, issued)
      const face = faceOf(issued)
      for (const domain of served) {
        await rows(
          db,
          sql`UPDATE domain SET certificate_id = ${id}, certificate_failures = 0 WHERE id = ${domain.id} RETURNING id`,
        )
        if (domain.ssl !== 'ACTIVE') await changeSsl(db, config, domain.id, 'ISSUING')
        await changeSsl(db, config, domain.id, 'ACTIVE', face)
        await enqueue(db, 'issue', domain.id, { domainId: domain.id }, issued.lookAgainAt)
      }
      await dropSuperseded(
        db,
        served.flatMap(({ certificateId }) => certificateId ?? []),
      )
      return true
    })
  }

  async function fail(parties: Party[], lease: Lease | null, failure: Failure): Promise<void> {
    await inTransaction(db, async (db) => {
      if (lease && !(await endOrder(db, lease))) return
      for (const { key: id } of parties) {
        const [counted] = await rows<{ failures: number }>(
          db,
          sql`UPDATE domain SET certificate_failures = certificate_failures + 1 WHERE id = ${id}
              RETURNING certificate_failures AS failures`,
        )
        const [domain] = await readDomains(db, sql`d.id = ${id}`)
        if (!counted || !domain) continue
        const nextAttemptAt = failure.nextAttemptAt(counted.failures)
        const face = { ...(domain.face ?? blankFace), ...failureFace(failure, nextAttemptAt) }
        const moved = await changeSsl(db, config, id, 'ERROR', face)
        if (!moved) await noteCertificate(db, id, face)
        // One that is still in service must be seen to end, even if that is before the next attempt.
        const runAt = domain.ssl === 'ACTIVE' && domain.notAfter < nextAttemptAt ? domain.notAfter : nextAttemptAt
        await enqueue(db, 'issue', id, { domainId: id }, runAt)
      }
    })
  }

  return {
    job: { key: domainId, payload: { domainId } },
    find,
    async begin(parties) {
      for (const { key } of parties) await changeSsl(db, config, key, 'ISSUING')
    },
    install,
    fail,
    async expire() {
      await changeSsl(db, config, domainId, 'EXPIRED')
    },
  }
}

const blankFace: CertificateView = {
  issuer: null,
  serial: null,
  notBefore: null,
  notAfter: null,
  sans: [],
  lastError: null,
  nextAttemptAt: null,
}

function failureFace(failure: Failure, nextAttemptAt: Date): Pick<CertificateView, 'lastError' | 'nextAttemptAt'> {
  return { lastError: failure.message, nextAttemptAt: nextAttemptAt.toISOString() }
}

function faceOf(issued: Issued): CertificateView {
  return {
    issuer: issued.issuer,
    serial: issued.serial,
    notBefore: issued.notBefore.toISOString(),
    notAfter: issued.notAfter.toISOString(),
    sans: issued.names,
    lastError: null,
    nextAttemptAt: issued.renewAt.toISOString(),
  }
}
