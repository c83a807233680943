// What is known of secondaries that lag, and where it is kept.
import type { ProbeError } from '../../../dns/soa-probe.ts'
import type { LagReason } from '../../../services/dns/index.ts'

/** A zone that a secondary does not serve as it is here. */
export type Lag = { origin: string; secondary: string; served: number | null; reason: LagReason; since: Date }

/** Where lags are kept beyond this process, so that each begins and ends once. */
export type LagStore = {
  begin(lag: Lag): Promise<void>
  end(lag: Pick<Lag, 'origin' | 'secondary'>): Promise<void>
  /** What a secondary of a customer served just now. */
  checked(check: { origin: string; secondary: string; serial: number | null; error: ProbeError | null }): Promise<void>
  /** For a secondary that is told no more. */
  forget(lag: Pick<Lag, 'origin' | 'secondary'>): Promise<void>
  /** Those that were told of before this process began. */
  known(): Promise<Omit<Lag, 'served'>[]>
}

/** Of one secondary. */
export type LagSummary = { secondary: string; zones: number; oldestSeconds: number }

/** Writes to the store one after the other: thousands of zones may lag at once, and others need the database too. */
export function inTurn(store: LagStore | undefined) {
  let last: Promise<unknown> = Promise.resolve()
  return (write: (store: LagStore) => Promise<void>): Promise<void> => {
    if (!store) return Promise.resolve()
    const written = last.then(() => write(store))
    last = written.catch(() => {})
    return written
  }
}
