// Metrics of webhook deliveries.
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { cachedFigure } from '../../platform/observe/cached-figure.ts'
import { type Outcome, succeeded } from '../../services/webhooks/index.ts'

export type DeliveryMetrics = {
  attempted(outcome: Outcome): void
  /** Seconds from the event to the start of the first attempt. */
  firstAttempt(seconds: number): void
}

export function createDeliveryMetrics(
  registry: Registry = new Registry(),
  facts: { inFlight(): number; waiting(): Promise<number> },
): DeliveryMetrics {
  const attempts = new Counter({
    name: 'berth_webhook_attempts_total',
    help: 'Attempts to deliver events to webhooks, by outcome: delivered, refused by the receiver, or without an answer.',
    labelNames: ['outcome'],
    registers: [registry],
  })
  const delay = new Histogram({
    name: 'berth_webhook_first_attempt_seconds',
    help: 'Time from an event to the first attempt to deliver it.',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600],
    registers: [registry],
  })
  // Not cached, because the count is limited.
  const waiting = cachedFigure(facts.waiting, { ttlMs: 0 })
  new Gauge({
    name: 'berth_webhook_in_flight',
    help: 'Attempts under way in this process.',
    registers: [registry],
    collect() {
      this.set(facts.inFlight())
    },
  })
  new Gauge({
    name: 'berth_webhook_backlog',
    help: 'Deliveries that wait for an attempt, of all workers, counted up to 20,000.',
    registers: [registry],
    async collect() {
      this.set((await waiting()) ?? Number.NaN)
    },
  })
  return {
    attempted(outcome) {
      const name = succeeded(outcome) ? 'delivered' : outcome.status === null ? 'unanswered' : 'refused'
      attempts.inc({ outcome: name })
    },
    firstAttempt: (seconds) => delay.observe(Math.max(0, seconds)),
  }
}
