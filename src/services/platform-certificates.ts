// The platform's own certificates in rows: that of its deployments, and that of the API where it is under a name of ours.
import type { Config } from '../config.ts'
import { type Db, inTransaction, rows, sql } from '../db.ts'
import { enqueue } from '../jobs/queue.ts'
import { endOrder } from './acme.ts'
import {
  addCertificate,
  certificateOf,
  dropSuperseded,
  type InServiceRow,
  inServiceColumns,
  type Ledger,
  type Party,
  type Wanted,
} from './certificate-ledger.ts'

export type Purpose = 'deployments' | 'api'

/** Deployments named on one certificate, newest first: a development machine that has more does not open them all. */
const highestLabels = 200

export function platformJob(purpose: Purpose): Ledger['job'] {
  return { key: `platform ${purpose}`, payload: { platform: purpose } }
}

/** Whether verifiers refuse a wildcard directly below the name, as OpenSSL, Node and browsers do with one label. */
export function refusesWildcard(domain: string): boolean {
  return !domain.includes('.')
}

/** Whether a name on a certificate stands for a host. */
function covers(name: string, host: string): boolean {
  if (!name.startsWith('*.')) return name === host
  return host.slice(host.indexOf('.')) === name.slice(1)
}

const edgeDomain = (config: Config) => config.edge.domain.toLowerCase()

/** Hosts below a name of one label are named one by one, because its wildcard would not be believed. */
async function labelledHosts(db: Db, domain: string): Promise<string[]> {
  const labels = await rows<{ label: string }>(
    db,
    sql`SELECT label FROM project UNION ALL
        (SELECT label FROM deployment WHERE state = 'READY' ORDER BY id DESC LIMIT ${highestLabels}::int)`,
  )
  return labels.map(({ label }) => `${label}.${domain}`)
}

async function namesOf(db: Db, config: Config, purpose: Purpose): Promise<{ names: string[]; zone: string } | null> {
  const domain = edgeDomain(config)
  const wildcard = [domain, `*.${domain}`]
  const host = config.managedTlsHost
  if (purpose === 'deployments') {
    // No authority but our own issues for a name of one label, so only there does naming each help.
    if (config.acme || !refusesWildcard(domain)) return { names: wildcard, zone: domain }
    const own = host ? [host] : []
    return { names: [...new Set([...wildcard, ...own, ...(await labelledHosts(db, domain))])], zone: domain }
  }
  // One label below the deployments' domain, or that domain itself, is on their certificate already.
  if (!host || wildcard.some((name) => covers(name, host))) return null
  return { names: [host], zone: domain }
}

type PlatformRow = InServiceRow & { failures: number; nextAttemptAt: Date | null }

export function platformLedger(db: Db, config: Config, purpose: Purpose): Ledger {
  const job = platformJob(purpose)

  async function find(): Promise<Wanted | null> {
    const own = await namesOf(db, config, purpose)
    if (!own) return null
    const [row] = await rows<PlatformRow>(
      db,
      sql`SELECT p.failures, p.next_attempt_at AS "nextAttemptAt", ${inServiceColumns}
          FROM platform_certificate p LEFT JOIN certificate c ON c.id = p.certificate_id WHERE p.purpose = ${purpose}`,
    )
    const party: Party = {
      key: job.key,
      ...own,
      entitled: true,
      ssl: null,
      failures: row?.failures ?? 0,
      nextAttemptAt: row?.nextAttemptAt ?? null,
      certificate: row ? certificateOf(row) : null,
    }
    return { subject: job.key, accountId: null, parties: [party], extraNames: [] }
  }

  return {
    job,
    find,
    begin: async () => {},
    async install(_wanted, lease, issued) {
      return inTransaction(db, async (db) => {
        if (!(await endOrder(db, lease))) return false
        const before = await db.platformCertificate.findUnique({ where: { purpose } })
        const certificateId = await addCertificate(db, null, issued)
        const row = { certificateId, failures: 0, lastError: null, nextAttemptAt: issued.renewAt }
        await db.platformCertificate.upsert({ where: { purpose }, create: { purpose, ...row }, update: row })
        if (before?.certificateId) await dropSuperseded(db, [before.certificateId])
        await enqueue(db, 'issue', job.key, job.payload, issued.lookAgainAt)
        return true
      })
    },
    async fail(_parties, lease, failure) {
      await inTransaction(db, async (db) => {
        if (lease && !(await endOrder(db, lease))) return
        const failures = { increment: 1 }
        const lastError = failure.message
        const row = await db.platformCertificate.upsert({
          where: { purpose },
          create: { purpose, failures: 1, lastError },
          update: { failures, lastError },
        })
        const nextAttemptAt = failure.nextAttemptAt(row.failures)
        await db.platformCertificate.update({ where: { purpose }, data: { nextAttemptAt } })
        await enqueue(db, 'issue', job.key, job.payload, nextAttemptAt)
      })
    },
    expire: async () => {},
  }
}
