// Leases: a row that only one worker may work on has the worker's name and an expiry time. The worker renews its lease
// while it works; if it dies, the lease expires and another worker takes over.

// What a lost machine held is taken up elsewhere within half a minute.
export const leaseMs = 20_000
// Three renewals may fail before a lease ends.
const renewMs = leaseMs / 4

/** When a lease that begins now ends, in SQL; `ms` is a number or a parameter. */
export const leaseEnd = (ms: number | string = leaseMs) => `now() + ${ms} * interval '1 millisecond'`

/** Whether a lease is over or was never taken, in SQL; `until` is the column with its end. */
export const isFree = (until: string) => `(${until} IS NULL OR ${until} <= now())`

export type HeldLease = {
  /** Aborts when another worker has the lease: further work would be done twice. */
  lost: AbortSignal
  /** Stops renewing. */
  stop(): void
}

/** Renews a lease from now on. `renew` returns whether it is still held; if it rejects, that is unknown. */
export function holdLease(renew: () => Promise<boolean>): HeldLease {
  const lost = new AbortController()
  const timer = setInterval(() => {
    renew().then(
      (held) => held || lost.abort(new LostLease()),
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
