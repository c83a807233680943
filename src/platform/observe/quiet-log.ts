// Keeps outages and floods from filling the log: errors caused by a missing database or too many requests are logged once
// a minute per message, with the number of omitted ones.
import type { LogFn, Logger } from 'pino'
import { isDatabaseLost, isPoolFull, isTimedOut } from '../database/database.ts'

const againMs = 60_000

const isOfOutage = (err: unknown, message: string) =>
  message === 'overloaded' || isDatabaseLost(err) || isPoolFull(err) || isTimedOut(err)

/** For pino's `hooks.logMethod`. */
export function createQuieting(now: () => number = Date.now) {
  // Messages are constants, so there is a limited number.
  const logged = new Map<string, { atMs: number; omitted: number }>()

  return function quieten(this: Logger, args: Parameters<LogFn>, method: LogFn): void {
    const [about, message] = args as [unknown, unknown]
    const err = (about as { err?: unknown } | null)?.err
    if (err === undefined || typeof message !== 'string' || !isOfOutage(err, message)) {
      method.apply(this, args)
      return
    }
    const last = logged.get(message)
    if (last && now() - last.atMs < againMs) {
      last.omitted++
      return
    }
    logged.set(message, { atMs: now(), omitted: 0 })
    const omitted = last?.omitted ?? 0
    method.call(this, omitted > 0 ? { ...(about as object), omitted } : about, message)
  }
}
