// Errors when taking jobs from the queue: logged, but not at every poll; counted; and reported by readiness if they
// last.
import type { Logger } from 'pino'
import type { JobKind } from './kinds.ts'

export type Taking = {
  /** What was taken; nothing if that failed. */
  attempt<T>(kind: JobKind, take: () => Promise<T[]>): Promise<T[]>
  /** How often it failed, for metrics. */
  readonly errors: ReadonlyMap<JobKind, number>
  /** Null, or the sentence for /readyz. */
  readiness(): string | null
}

// A database restart takes less.
const lastingMs = 10_000
const logAgainMs = 60_000

export function createTaking(log: Logger): Taking {
  const errors = new Map<JobKind, number>()
  /** By kind, the start of the first attempt since the last success. */
  const failingSinceMs = new Map<JobKind, number>()
  const failing = new Set<JobKind>()
  let loggedAt = 0

  function fail(kind: JobKind, err: unknown): void {
    errors.set(kind, (errors.get(kind) ?? 0) + 1)
    failing.add(kind)
    if (Date.now() - loggedAt < logAgainMs) return
    loggedAt = Date.now()
    log.error({ err, kind, errors: errors.get(kind) }, 'jobs cannot be taken')
  }

  return {
    errors,
    async attempt(kind, take) {
      if (!failingSinceMs.has(kind)) failingSinceMs.set(kind, Date.now())
      try {
        const taken = await take()
        failingSinceMs.delete(kind)
        if (failing.delete(kind) && failing.size === 0) {
          loggedAt = 0
          log.info('jobs are taken again')
        }
        return taken
      } catch (error) {
        fail(kind, error)
        return []
      }
    },
    readiness() {
      const now = Date.now()
      const kinds = [...failingSinceMs].filter(([, since]) => now - since >= lastingMs).map(([kind]) => kind)
      return kinds.length > 0 ? `No job could be taken for more than 10 s, of the kind ${kinds.join(', ')}.` : null
    },
  }
}
