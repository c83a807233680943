// Long work on the event loop, with pauses in which others get on. However much of such work there is, one part runs a turn.

/** To be asked between small steps: what to wait for before the next one, or null if there is time left. */
export type Pauses = () => Promise<void> | null

const maxMs = 5
const waiting: (() => void)[] = []

function next(): void {
  try {
    waiting[0]!()
  } finally {
    // Only now: what waits again meanwhile comes after the others.
    waiting.shift()
    if (waiting.length > 0) setImmediate(next)
  }
}

/** Calls back in a later turn. Of all who wait, one is called a turn, so that others wait for no more than that one. */
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
