// The tokens of open streams: when one of them stops being good, its streams end. One query for all of them.
import type { Actor } from '../actor.ts'
import type { Database } from '../db.ts'
import type { Notifications } from '../notifications.ts'
import { liveTokens } from '../services/tokens.ts'

/** Ends a stream when its token is revoked or has expired, or its account is suspended; returns how to stop watching. */
export type TokenWatch = (actor: Actor, end: () => void) => () => void

// An expired token gives no notice, and a notice may get lost, so all are looked at now and then.
const checkMs = 15_000

const watches = new WeakMap<Notifications, TokenWatch>()

/** One watch for each connection that notices come from. */
export function tokenWatchOf(db: Database, notifications: Notifications): TokenWatch {
  const known = watches.get(notifications)
  if (known) return known
  const made = createTokenWatch(db, notifications)
  watches.set(notifications, made)
  return made
}

function createTokenWatch(db: Database, notifications: Notifications): TokenWatch {
  const tokens = new Map<string, { accountId: string; ends: Set<() => void> }>()
  let off: (() => void)[] = []

  async function check(accountId?: string): Promise<void> {
    const ids = [...tokens.keys()].filter((id) => accountId === undefined || tokens.get(id)!.accountId === accountId)
    if (ids.length === 0) return
    // When the database is away, there is nothing to be seen of a revocation, nor of anything else.
    const live = await liveTokens(db, ids).catch(() => null)
    if (!live) return
    for (const id of ids) if (!live.has(id)) for (const end of tokens.get(id)?.ends ?? []) end()
  }

  function begin(): void {
    const timer = setInterval(() => void check(), checkMs)
    off = [
      () => clearInterval(timer),
      notifications.on('event', ({ type, accountId }) => {
        if (/^(token|account)\./.test(type)) void check(accountId)
      }),
      notifications.on('reconnected', () => void check()),
    ]
  }

  return ({ tokenId, accountId }, end) => {
    if (tokens.size === 0) begin()
    const entry = tokens.get(tokenId) ?? { accountId, ends: new Set() }
    entry.ends.add(end)
    tokens.set(tokenId, entry)
    return () => {
      entry.ends.delete(end)
      if (entry.ends.size > 0 || tokens.get(tokenId) !== entry) return
      tokens.delete(tokenId)
      if (tokens.size === 0) for (const stop of off.splice(0)) stop()
    }
  }
}
