// Figures that take a query, for whoever scrapes: kept for some seconds, asked for once at a time, and given up soon.

// One who could not answer is asked again soon.
const failureKeptMs = 1_000

export type KeptFigureOptions = { keptMs?: number; timeoutMs?: number }

/**
 * Null while there is no answer: a scrape neither fails nor waits because the database is away or hangs. All who ask in one
 * turn of the event loop, such as the gauges of one scrape, get the same.
 */
export function keptFigure<T>(ask: () => Promise<T>, options: KeptFigureOptions = {}): () => Promise<T | null> {
  const { keptMs = 5_000, timeoutMs = 1_500 } = options
  let kept: { value: T | null; untilMs: number } | null = null
  let asking: Promise<void> | null = null

  async function askOnce(): Promise<void> {
    const value = await ask().catch(() => null)
    kept = { value, untilMs: performance.now() + (value === null ? Math.min(keptMs, failureKeptMs) : keptMs) }
    asking = null
  }

  async function read(): Promise<T | null> {
    if (kept && performance.now() < kept.untilMs) return kept.value
    kept = null
    asking ??= askOnce()
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, timeoutMs)
    await Promise.race([asking, late.promise])
    clearTimeout(timer)
    return (kept as { value: T | null } | null)?.value ?? null
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
