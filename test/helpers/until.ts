// Waits for a condition, never for a time; the limit only catches what would never happen.
import { setTimeout as sleep } from 'node:timers/promises'

const hangsMs = 90_000
const pauseMs = { first: 5, usual: 50, most: 100 }

type There<T> = Exclude<NonNullable<T>, false>

/** Polls until there is a value, and returns it. */
export async function until<T>(look: () => T | Promise<T>, withinMs = hangsMs): Promise<There<T>> {
  const endMs = performance.now() + withinMs
  for (let pause = pauseMs.first; ; pause = Math.min(2 * pause, pauseMs.usual)) {
    const startMs = performance.now()
    const found = await look()
    if (found) return found as There<T>
    const nowMs = performance.now()
    if (nowMs > endMs) throw new Error(`waited in vain for ${look}`)
    // Listing all processes of a machine takes long, and the awaited work often runs in this process.
    await sleep(Math.min(Math.max(pause, 2 * (nowMs - startMs)), pauseMs.most))
  }
}
