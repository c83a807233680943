// Metrics of zone transfers and NOTIFY messages.
import { Counter, Registry } from 'prom-client'

export type TransferKind = 'axfr' | 'ixfr' | 'current' | 'refused' | 'badsig'

export type TransferMetrics = {
  answered(kind: TransferKind, records?: number): void
  notified(result: 'acknowledged' | 'lost'): void
}

export function createTransferMetrics(registry: Registry = new Registry()): TransferMetrics {
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
  return {
    answered(kind, count = 0) {
      transfers.inc({ kind })
      records.inc(count)
    },
    notified: (result) => notices.inc({ result }),
  }
}
