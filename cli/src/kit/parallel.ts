// Runs tasks with limited concurrency.

/** Throws the first error and starts no more tasks after it. */
export async function inParallel<T>(items: T[], limit: number, work: (item: T) => Promise<void>): Promise<void> {
  const rest = items[Symbol.iterator]()
  let failed = false
  async function next(): Promise<void> {
    for (const item of rest) {
      if (failed) return
      await work(item)
    }
  }
  // All workers share one iterator.
  const workers = Array.from({ length: Math.min(limit, items.length) }, () =>
    next().catch((error) => {
      failed = true
      throw error
    }),
  )
  await Promise.all(workers)
}
