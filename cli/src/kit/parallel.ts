// Several at a time.

/** Throws with the first that fails, and begins no other then. */
export async function inParallel<T>(items: T[], most: number, work: (item: T) => Promise<void>): Promise<void> {
  const rest = items[Symbol.iterator]()
  let failed = false
  async function next(): Promise<void> {
    for (const item of rest) {
      if (failed) return
      await work(item)
    }
  }
  // An array's iterator is shared by all; each takes what the others have left.
  const shared = Array.from({ length: Math.min(most, items.length) }, () =>
    next().catch((error) => {
      failed = true
      throw error
    }),
  )
  await Promise.all(shared)
}
