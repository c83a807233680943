// What we know about secondaries that lag, and the interface for storing it.
import type { ProbeError } from '../../../dns/soa-probe.ts'
import type { LagReason } from '../../../services/dns/index.ts'

/** A zone of which a secondary doesn't serve the current version. */
export type Lag = { origin: string; secondary: string; served: number | null; reason: LagReason; since: Date }

/** Stores lags beyond this process, so that each begins and ends once. */
export type LagStore = {
  begin(lag: Lag): Promise<void>
  end(lag: Pick<Lag, 'origin' | 'secondary'>): Promise<void>
  /** What a customer's secondary served just now. */
  checked(check: { origin: string; secondary: string; serial: number | null; error: ProbeError | null }): Promise<void>
  /** For a secondary that is no longer notified. */
  forget(lag: Pick<Lag, 'origin' | 'secondary'>): Promise<void>
  /** Lags that were reported before this process started. */
  known(): Promise<Omit<Lag, 'served'>[]>
}

/** The lag of one secondary. */
export type LagSummary = { secondary: string; zones: number; oldestSeconds: number }

/** Runs writes to the store one by one: thousands of zones may lag at once, and others need the database too. */
export function inTurn(store: LagStore | undefined) {
  let last: Promise<unknown> = Promise.resolve()
  return (write: (store: LagStore) => Promise<void>): Promise<void> => {
    if (!store) return Promise.resolve()
    const written = last.then(() => write(store))
    last = written.catch(() => {})
    return written
  }
}
