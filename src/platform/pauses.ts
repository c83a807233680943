// Pauses for long work on the event loop. However much such work there is, one part of it runs per turn.

/** Called between small steps. Returns a promise to await before the next step, or null if there is time left. */
export type Pauses = () => Promise<void> | null

const maxMs = 5
const waiting: (() => void)[] = []

function next(): void {
  try {
    waiting[0]!()
  } finally {
    // Only now, so that work that is added during the call queues behind the others.
    waiting.shift()
    if (waiting.length > 0) setImmediate(next)
  }
}

/** Calls `work` in a later turn. One callback runs per turn, so that other work waits for at most one. */
export function nextTurn(work: () => void): void {
  waiting.push(work)
  if (waiting.length === 1) setImmediate(next)
}

/** Resolves when the next part may run. */
export const turn = (): Promise<void> => new Promise(nextTurn)

export function createPauses(): Pauses {
  let endMs = performance.now() + maxMs
  return () => {
    if (performance.now() < endMs) return null
    return turn().then(() => {
      endMs = performance.now() + maxMs
    })
  }
}
