// Metrics of zone transfers and NOTIFY messages.
import { Counter, Gauge, Registry } from 'prom-client'
import type { LagSummary } from './lag.ts'

export type TransferKind = 'axfr' | 'ixfr' | 'current' | 'refused' | 'badsig'

export type TransferMetrics = {
  answered(kind: TransferKind): void
  sent(records: number): void
  notified(result: 'acknowledged' | 'lost'): void
}

export function createTransferMetrics(lags: () => LagSummary[], registry: Registry = new Registry()): TransferMetrics {
  const transfers = new Counter({
    name: 'berth_nameserver_transfers_total',
    help: 'Requests for zone transfer: whole zones, differences, nothing new, refused, signed wrongly.',
    labelNames: ['kind'],
    registers: [registry],
  })
  const records = new Counter({
    name: 'berth_nameserver_transferred_records_total',
    help: 'Records sent to secondaries.',
    registers: [registry],
  })
  const notices = new Counter({
    name: 'berth_nameserver_notices_total',
    help: 'NOTIFY messages to secondaries, by how they ended.',
    labelNames: ['result'],
    registers: [registry],
  })
  new Gauge({
    name: 'berth_nameserver_secondary_lagging_zones',
    help: 'Zones that a secondary does not serve as they are here, although it was told.',
    labelNames: ['secondary'],
    registers: [registry],
    collect() {
      for (const { secondary, zones } of lags()) this.set({ secondary }, zones)
    },
  })
  new Gauge({
    name: 'berth_nameserver_secondary_lag_seconds',
    help: 'For how long the secondary has been behind in the zone that it is furthest behind in.',
    labelNames: ['secondary'],
    registers: [registry],
    collect() {
      for (const { secondary, oldestSeconds } of lags()) this.set({ secondary }, oldestSeconds)
    },
  })
  return {
    answered: (kind) => transfers.inc({ kind }),
    sent: (count) => records.inc(count),
    notified: (result) => notices.inc({ result }),
  }
}
