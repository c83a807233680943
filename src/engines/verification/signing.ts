// The dnssec job: queries a zone's parent for its DS records and takes the next step.
import type { Config } from '../../config.ts'
import { listenAddress, reachableAddress } from '../../dns/listen-address.ts'
import type { Handler } from '../../jobs/worker.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import { readSigningCheck, type SigningCheck, settleSigning } from '../../services/dns/index.ts'
import type { DnsAccess } from './delegation.ts'
import { isDevelopmentName } from './development.ts'
import type { Bounds } from './lookups.ts'
import { findUnserved, hostedDsText, queryDs, queryParent } from './parent.ts'

type SigningJobOptions = { config: Config; db: Database; vault: Vault; dns: DnsAccess }

// Checks mostly wait for the network.
const concurrency = 4
const checkTimeoutMs = 25_000
// Only an unavailable database or an internal error is retried. The sweep finds abandoned checks.
const retryDelaysMs = [1_000, 5_000, 30_000, 120_000, 600_000] as const

/** Names that don't exist on the internet have no parent and no DS records. */
const noParent = { ds: [], everywhere: [], anywhere: [], ttl: 0 }

export function createSigningJob({ config, db, vault, dns }: SigningJobOptions): Handler<'dnssec'> {
  /** The servers of a zone hosted here. In development, the addresses where our nameservers listen. */
  async function serversOf(zone: string, nameservers: readonly string[], bounds: Bounds) {
    if (!isDevelopmentName(config, zone)) return { servers: await dns.lookups.serversOf(nameservers, bounds), dns }
    const listeners = config.nameserverListen.map(listenAddress).flatMap((address) => reachableAddress(address) ?? [])
    const servers = listeners.map(({ host, port }) => ({ name: `${host}:${port}`, addresses: [`${host}:${port}`] }))
    return { servers, dns: { reach: listenAddress } }
  }

  async function findUnservedKeys(check: SigningCheck, bounds: Bounds): Promise<string | null> {
    if (check.keys.length === 0) return null
    const { servers, dns } = await serversOf(check.name, check.nameservers, bounds)
    return findUnserved(check, servers, dns, bounds)
  }

  async function findParentDs({ name, hostedAbove, waitsForAbove }: SigningCheck, bounds: Bounds) {
    if (!hostedAbove) return isDevelopmentName(config, name) ? noParent : queryParent(name, dns, bounds)
    if (waitsForAbove) return { fault: hostedDsText(name, hostedAbove.name) }
    const own = await serversOf(hostedAbove.name, hostedAbove.nameservers, bounds)
    return queryDs(name, { zone: hostedAbove.name, servers: own.servers }, own.dns, bounds)
  }

  return {
    concurrency,
    retryDelaysMs,
    async run({ domainId }, { signal, requireHeld }) {
      const check = await readSigningCheck(db, config, domainId)
      if (!check) return
      const bounds = { signal, deadlineMs: performance.now() + checkTimeoutMs }
      const found = await findParentDs(check, bounds)
      const unserved = await findUnservedKeys(check, bounds)
      signal.throwIfAborted()
      await settleSigning(db, { ...config, vault, guard: requireHeld }, check, { found, unserved })
    },
    async giveUp() {
      // requeueForgottenSigning finds the check by the time in its row.
    },
  }
}
