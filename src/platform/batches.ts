// Splits long work into short pieces, so that it doesn't block other work.
import { setTimeout as sleep } from 'node:timers/promises'

/** How much a piece did, and whether there may be more to do. */
export type Batch = { count: number; more: boolean }

/**
 * Repeats `piece` until nothing is left, and returns the total count. After each piece it pauses for as long as the piece
 * took, so it uses at most one connection, half of the time.
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

/** For a deletion with a row limit, such as Prisma's `deleteMany`. */
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
