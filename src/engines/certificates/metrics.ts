// Metrics of the certificate engine.
import { Counter, Registry } from 'prom-client'
import type { FailureKind } from './failures.ts'

export type IssuerMetrics = { attempted(outcome: 'issued' | FailureKind): void }

export function createIssuerMetrics(registry: Registry = new Registry()): IssuerMetrics {
  const attempts = new Counter({
    name: 'berth_certificate_attempts_total',
    help: 'Attempts to get a certificate, by how they ended: issued, or why the authority did not.',
    labelNames: ['outcome'],
    registers: [registry],
  })
  return { attempted: (outcome) => attempts.inc({ outcome }) }
}
