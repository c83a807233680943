// Runs several tasks at a time.

/** Throws the first error and starts no more tasks after it. */
export async function inParallel<T>(items: T[], most: number, work: (item: T) => Promise<void>): Promise<void> {
  const rest = items[Symbol.iterator]()
  let failed = false
  async function next(): Promise<void> {
    for (const item of rest) {
      if (failed) return
      await work(item)
    }
  }
  // All workers share one iterator.
  const shared = Array.from({ length: Math.min(most, items.length) }, () =>
    next().catch((error) => {
      failed = true
      throw error
    }),
  )
  await Promise.all(shared)
}
