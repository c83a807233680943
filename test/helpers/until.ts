// Waiting for a condition, never for a time: the bound only catches what would never come.
import { setTimeout as sleep } from 'node:timers/promises'

const hangsMs = 30_000
const pauseMs = 5

type There<T> = Exclude<NonNullable<T>, false>

/** Looks again and again until something is there, and returns it. */
export async function until<T>(look: () => T | Promise<T>, withinMs = hangsMs): Promise<There<T>> {
  const endMs = performance.now() + withinMs
  for (;;) {
    const found = await look()
    if (found) return found as There<T>
    if (performance.now() > endMs) throw new Error(`waited in vain for ${look}`)
    await sleep(pauseMs)
  }
}
