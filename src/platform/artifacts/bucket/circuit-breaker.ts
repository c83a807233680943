// A circuit breaker: while a service is down, requests fail at once, and only one at a time checks whether it is back.

export type Attempt = {
  succeed(): void
  /** The service didn't respond. Others fail with the same error for a while. */
  fail(error: Error): void
  finish(): void
}

const openMs = 1_000

/** `start` throws the last error while the service is down. */
export function createCircuitBreaker(): { start(): Attempt } {
  let down: { error: Error; untilMs: number } | null = null
  let probing = false
  return {
    start() {
      const isProbe = down !== null
      if (down && (probing || performance.now() < down.untilMs)) throw down.error
      if (isProbe) probing = true
      return {
        succeed() {
          down = null
        },
        fail(error) {
          down = { error, untilMs: performance.now() + openMs }
        },
        finish() {
          if (isProbe) probing = false
        },
      }
    },
  }
}
