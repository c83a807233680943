// The verify job: checks who owns a domain, records the result, and queues the next check. Also creates the dnssec job.
import type { Logger } from 'pino'
import { Counter, type Registry } from 'prom-client'
import type { Config } from '../../config.ts'
import type { Handler } from '../../jobs/worker.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import { readClaim, settleCheck } from '../../services/verification/index.ts'
import type { Endpoint } from './ask.ts'
import { checkClaim } from './check.ts'
import type { DnsAccess } from './delegation.ts'
import { checkDevelopmentName, isDevelopmentName } from './development.ts'
import { createLookups } from './lookups.ts'
import { createSigningJob } from './signing.ts'

export type VerificationOptions = {
  config: Config
  db: Database
  vault: Vault
  log: Logger
  registry?: Registry
  /** The endpoint for the server at an address. For tests only. */
  reach?(address: string): Endpoint
}

// Checks mostly wait for the network.
const concurrency = 8
const dnsPort = 53
/** A check that takes longer ends as undecided. */
const checkTimeoutMs = 25_000
// Only an unavailable database or an internal error is retried. The sweep finds abandoned checks.
const retryDelaysMs = [1_000, 5_000, 30_000, 120_000, 600_000] as const

export function createVerification(options: VerificationOptions): {
  verify: Handler<'verify'>
  dnssec: Handler<'dnssec'>
} {
  const { config, db, vault, log, registry } = options
  const dns: DnsAccess = {
    lookups: createLookups({ resolvers: config.dnsResolvers, allowPrivate: !config.production }),
    reach: options.reach ?? ((address) => ({ host: address, port: dnsPort })),
    nameservers: config.nameservers,
  }
  const checks = new Counter({
    name: 'berth_verification_checks_total',
    help: 'Checks of who owns a domain, by what they found.',
    labelNames: ['outcome'],
    registers: registry ? [registry] : [],
  })
  return {
    dnssec: createSigningJob({ config, db, vault, dns }),
    verify: {
      concurrency,
      retryDelaysMs,
      async run({ domainId }, { signal, requireHeld }) {
        const claim = await readClaim(db, config, domainId)
        if (!claim) return
        const bounds = { signal, deadlineMs: performance.now() + checkTimeoutMs }
        const result = isDevelopmentName(config, claim.host)
          ? await checkDevelopmentName(claim, config, bounds)
          : await checkClaim(claim, dns, bounds)
        signal.throwIfAborted()
        const change = await settleCheck(db, { ...config, guard: requireHeld }, claim, result)
        checks.inc({ outcome: result.outcome })
        log.debug({ domain: claim.name, change, ...result }, 'checked the ownership of a domain')
      },
      async giveUp() {
        // requeueForgottenChecks finds the check by the time in its row.
      },
    },
  }
}
