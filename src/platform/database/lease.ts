// Leases: a row that only one worker may work on has the worker's name and an expiry time. The worker renews its lease
// while it works. If the worker dies, the lease expires and another worker takes over.

// Work of a lost machine is taken over within half a minute.
export const leaseMs = 20_000
// Three renewals may fail before the lease expires.
const renewMs = leaseMs / 4

/** SQL for the expiry of a lease that starts now. `ms` is a number or a parameter. */
export const leaseEnd = (ms: number | string = leaseMs) => `now() + ${ms} * interval '1 millisecond'`

/** SQL for whether a lease has expired or was never acquired. `until` is the column with its expiry. */
export const isFree = (until: string) => `(${until} IS NULL OR ${until} <= now())`

export type Lease = {
  /** Aborts when another worker has the lease: continuing would do the work twice. */
  lost: AbortSignal
  /** Stops renewing. */
  stop(): void
}

/** Renews a lease from now on. `renew` returns whether we still have it; if it rejects, that is unknown. */
export function renewLease(renew: () => Promise<boolean>): Lease {
  const lost = new AbortController()
  const timer = setInterval(() => {
    renew().then(
      (renewed) => renewed || lost.abort(new LostLease()),
      () => {},
    )
  }, renewMs)
  return { lost: lost.signal, stop: () => clearInterval(timer) }
}

export class LostLease extends Error {
  override name = 'LostLease'
  constructor() {
    super('the lease was lost')
  }
}
