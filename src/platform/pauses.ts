// Long work on the event loop, with pauses in which others get on. However much of such work there is, one part runs a turn.

/** To be asked between small steps: what to wait for before the next one, or null if there is time left. */
export type Pauses = () => Promise<void> | null

const mostMs = 5
const waiting: (() => void)[] = []

function next(): void {
  waiting.shift()!()
  if (waiting.length > 0) setImmediate(next)
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve)
    if (waiting.length === 1) setImmediate(next)
  })
}

export function createPauses(): Pauses {
  let endMs = performance.now() + mostMs
  return () => {
    if (performance.now() < endMs) return null
    return turn().then(() => {
      endMs = performance.now() + mostMs
    })
  }
}
