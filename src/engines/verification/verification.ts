// The verify job: checks who owns a domain, writes down what was found, and leaves a job for the next check.
import type { Logger } from 'pino'
import { Counter, type Registry } from 'prom-client'
import type { Config } from '../../config.ts'
import type { Database } from '../../db.ts'
import type { Handler } from '../../jobs/worker.ts'
import { readClaim, settleCheck } from '../../services/domain-checks.ts'
import type { Endpoint } from './ask.ts'
import { checkClaim } from './check.ts'
import type { Surroundings } from './delegation.ts'
import { checkDevelopmentName, isDevelopmentName } from './development.ts'
import { createLookups } from './lookups.ts'

export type VerificationOptions = {
  config: Config
  db: Database
  log: Logger
  registry?: Registry
  /** Where the server at an address is asked. Only tests have a reason to give one. */
  reach?(address: string): Endpoint
}

// Checks wait for the network most of their time.
const concurrency = 8
const dnsPort = 53
/** A check that the DNS draws out longer than this ends with what it has: that it could not be asked. */
const checkMs = 25_000
// Only a database that is away, or a fault of ours, makes a check fail. What is given up is found by the sweep.
const retryDelaysMs = [1_000, 5_000, 30_000, 120_000, 600_000] as const

export function createVerification(options: VerificationOptions): { verify: Handler<'verify'> } {
  const { config, db, log, registry } = options
  const surroundings: Surroundings = {
    lookups: createLookups({ resolvers: config.dnsResolvers, allowPrivate: !config.production }),
    reach: options.reach ?? ((address) => ({ host: address, port: dnsPort })),
    nameservers: config.nameservers.map((name) => name.toLowerCase().replace(/\.$/, '')),
  }
  const checks = new Counter({
    name: 'berth_verification_checks_total',
    help: 'Checks of who owns a domain, by what they found.',
    labelNames: ['outcome'],
    registers: registry ? [registry] : [],
  })
  return {
    verify: {
      concurrency,
      retryDelaysMs,
      async run({ domainId }, { signal }) {
        const claim = await readClaim(db, domainId)
        if (!claim) return
        const bounds = { signal, deadlineMs: performance.now() + checkMs }
        const result = isDevelopmentName(config, claim.host)
          ? await checkDevelopmentName(claim, config, surroundings.nameservers, bounds)
          : await checkClaim(claim, surroundings, bounds)
        signal.throwIfAborted()
        const change = await settleCheck(db, config, claim, result, new Date())
        checks.inc({ outcome: result.outcome })
        log.debug({ domain: claim.name, change, ...result }, 'checked the ownership of a domain')
      },
      async giveUp() {
        // The row still says when it should have been checked, which is how requeueForgottenChecks finds it.
      },
    },
  }
}
