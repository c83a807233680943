// Long work in short pieces, so that nobody waits for it.
import { setTimeout as sleep } from 'node:timers/promises'

/** How much a piece did, and whether there may be more to do. */
export type Batch = { count: number; more: boolean }

/**
 * Repeats a piece of work until nothing is left, and returns the sum of what they did. It rests after each piece for as
 * long as that took: the work takes one connection at most, for half of the time.
 */
export async function inBatches(signal: AbortSignal | undefined, piece: () => Promise<Batch>): Promise<number> {
  let total = 0
  for (;;) {
    signal?.throwIfAborted()
    const startMs = performance.now()
    const { count, more } = await piece()
    total += count
    if (!more) return total
    await sleep(performance.now() - startMs, undefined, signal && { signal })
  }
}

/** The same for a deletion that takes a highest number of rows, as `deleteMany` of Prisma does. */
export function deleteInBatches(
  signal: AbortSignal | undefined,
  remove: (limit: number) => Promise<{ count: number }>,
  limit = 1_000,
): Promise<number> {
  return inBatches(signal, async () => {
    const { count } = await remove(limit)
    return { count, more: count === limit }
  })
}
