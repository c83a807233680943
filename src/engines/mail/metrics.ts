// Metrics of emails.
import { Counter, Gauge, Registry } from 'prom-client'
import { cachedFigure } from '../../platform/observe/cached-figure.ts'

export type MailMetrics = { ended(outcome: 'sent' | 'failed' | 'dropped'): void }

export function createMailMetrics(registry: Registry = new Registry(), waiting: () => Promise<number>): MailMetrics {
  const ends = new Counter({
    name: 'berth_mails_total',
    help: 'Mails that this process settled, by outcome: sent, failed (given up) or dropped (not to be sent any more).',
    labelNames: ['outcome'],
    registers: [registry],
  })
  const figure = cachedFigure(waiting)
  new Gauge({
    name: 'berth_mails_waiting',
    help: 'Mails that are due and not sent yet, of all workers, counted up to 10,000.',
    aggregator: 'max',
    registers: [registry],
    async collect() {
      this.set((await figure()) ?? Number.NaN)
    },
  })
  return { ended: (outcome) => ends.inc({ outcome }) }
}
