// Metrics that need a query: cached for some seconds, queried by one scrape at a time, and given up on soon.

// A failed query is retried soon.
const failureTtlMs = 1_000

export type CachedFigureOptions = { ttlMs?: number; timeoutMs?: number }

/**
 * Returns null while there is no result: a scrape neither fails nor waits when the database is down or hangs. All callers
 * in one turn of the event loop, such as the gauges of one scrape, get the same value.
 */
export function cachedFigure<T>(query: () => Promise<T>, options: CachedFigureOptions = {}): () => Promise<T | null> {
  const { ttlMs = 5_000, timeoutMs = 1_500 } = options
  let cached: { value: T | null; untilMs: number } | null = null
  let running: Promise<void> | null = null

  async function queryOnce(): Promise<void> {
    const value = await query().catch(() => null)
    cached = { value, untilMs: performance.now() + (value === null ? Math.min(ttlMs, failureTtlMs) : ttlMs) }
    running = null
  }

  async function read(): Promise<T | null> {
    if (cached && performance.now() < cached.untilMs) return cached.value
    cached = null
    running ??= queryOnce()
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, timeoutMs)
    await Promise.race([running, late.promise])
    clearTimeout(timer)
    return (cached as { value: T | null } | null)?.value ?? null
  }

  let reading: Promise<T | null> | null = null
  return () => {
    if (!reading) {
      reading = read()
      setImmediate(() => {
        reading = null
      })
    }
    return reading
  }
}
