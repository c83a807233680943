// The follow job: checks the serial of a zone's primary and imports its records if the serial has changed.
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import type { Handler } from '../../jobs/worker.ts'
import type { Database } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import { isPublicAddress } from '../../platform/http/public-address.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import {
  type Followed,
  type PrimaryCheck,
  readFollowed,
  recordPrimaryCheck,
  recordsAllowed,
  type ZoneWork,
} from '../../services/dns/index.ts'
import { askSoa, type Failure, type Soa, transferZone, type Version } from './primary.ts'

export type FollowOptions = {
  config: Pick<Config, 'nameservers' | 'edge' | 'production'>
  db: Database
  vault: Vault
  zoneWork: Pick<ZoneWork, 'upload' | 'importZone'>
  log: Logger
}

// The job mostly waits for the primary.
const concurrency = 4
// Limits for the intervals in the SOA record.
const seconds = { refresh: [60, 3_600], retry: [60, 600] } as const
const maxRecords = 1_000_000
// Only database errors are retried. Housekeeping queues abandoned jobs again.
const retryDelaysMs = [1_000, 5_000, 30_000, 120_000, 600_000] as const

const reasons: Record<Failure, string> = {
  timeout: 'The primary did not respond in time.',
  refused: 'The primary refused. It must allow transfers to this platform, with the key if there is one.',
  unreachable: 'The primary could not be reached.',
  malformed: 'The primary sent a malformed answer.',
  not_served: 'The primary is not authoritative for the zone.',
  badly_signed: 'The primary did not sign its answers with the key.',
  too_large: 'The primary’s zone is larger than the platform allows.',
}

const clamp = (value: number, [lowest, highest]: readonly [number, number]) =>
  Math.min(highest, Math.max(lowest, value))

const after = (delaySeconds: number) => new Date(Date.now() + delaySeconds * 1_000)

export function createFollowHandler({ config, db, vault, zoneWork, log }: FollowOptions): Handler<'follow'> {
  const system = (accountId: string) => ({ accountId, tokenId: 'system', scopes: [], projectIds: null })

  /** Why a version can't be imported; null if it was. */
  async function importVersion(followed: Followed, { text }: Version, signal: AbortSignal): Promise<string | null> {
    const upload = zoneWork.upload(followed.accountId)
    const { address, serial } = followed
    try {
      upload.push(Buffer.from(text, 'latin1'))
      await zoneWork.importZone(system(followed.accountId), followed.name, {
        upload,
        signal,
        options: config,
        ...{ dryRun: false, skipUnsupported: true, ifMatch: '*' },
        follows: { address, serial: serial === null ? null : String(serial) },
      })
      return null
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      return error.message
    } finally {
      upload.discard()
    }
  }

  async function checkPrimary(followed: Followed, signal: AbortSignal): Promise<PrimaryCheck> {
    const failed = (error: string, soa?: Soa): PrimaryCheck => {
      return { error, nextAt: after(clamp(soa?.retrySeconds ?? 0, seconds.retry)) }
    }
    // The installation may have become a production one since the primary was set.
    if (config.production && !isPublicAddress(followed.server.host)) return failed(reasons.unreachable)
    const soa = await askSoa(followed, signal)
    if (typeof soa === 'string') return failed(reasons[soa])
    const current = ({ serial, refreshSeconds }: Soa): PrimaryCheck => {
      return { serial, error: null, nextAt: after(clamp(refreshSeconds, seconds.refresh)) }
    }
    if (soa.serial === followed.serial) return current(soa)
    const { recordsPerZone } = await recordsAllowed(db, followed.accountId)
    // Allows for SOA, NS and signatures, which aren't imported.
    const highest = Math.min(maxRecords, 4 * recordsPerZone + 100)
    const version = await transferZone(followed, highest, signal)
    if (typeof version === 'string') return failed(reasons[version], soa)
    const refused = await importVersion(followed, version, signal)
    return refused === null ? current(version.soa) : failed(refused, soa)
  }

  return {
    concurrency,
    retryDelaysMs,
    async run({ domainId }, { signal }) {
      const followed = await readFollowed(db, vault, domainId)
      if (!followed) return
      const result = await checkPrimary(followed, signal)
      if (result.error !== null)
        log.info({ zone: followed.name, reason: result.error }, 'a primary could not be followed')
      await recordPrimaryCheck(db, followed, result)
    },
    async giveUp({ domainId }, error) {
      log.error({ err: error, domainId }, 'the primary of a zone could not be checked')
    },
  }
}
