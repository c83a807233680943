// Lets requests fail at once while a service does not answer: only one at a time tries whether it is back.

export type Pass = {
  /** The service answered. */
  succeed(): void
  /** It did not; others fail with the same error for a while. */
  fail(error: Error): void
  leave(): void
}

const awayMs = 1_000

/** `enter` throws the last error while the service is away. */
export function createGate(): { enter(): Pass } {
  let away: { error: Error; untilMs: number } | null = null
  let trying = false
  return {
    enter() {
      const tries = away !== null
      if (away && (trying || performance.now() < away.untilMs)) throw away.error
      if (tries) trying = true
      return {
        succeed() {
          away = null
        },
        fail(error) {
          away = { error, untilMs: performance.now() + awayMs }
        },
        leave() {
          if (tries) trying = false
        },
      }
    },
  }
}
