// Ends the streams of tokens that become invalid, with one query for all tokens.

import type { Database } from '../../../platform/database/database.ts'
import type { Notifications } from '../../../platform/database/notifications.ts'
import { type Actor, changesTokens, rightsOf } from '../../../services/identity/index.ts'
import { liveTokens } from '../../../services/tokens/index.ts'

/**
 * Calls `end` if the token is revoked, narrowed or expired, or its account is suspended. Returns a function that stops
 * watching.
 */
export type TokenWatch = (actor: Actor, end: () => void) => () => void

// Expiry causes no notification, so all tokens are checked regularly.
const checkMs = 15_000
// The same while notifications are down, though the database may still answer.
const unheardCheckMs = 1_000

declare module 'fastify' {
  interface FastifyInstance {
    watchToken: TokenWatch
  }
}

export function createTokenWatch(db: Database, notifications: Notifications): TokenWatch {
  /** `owners`: the account, and in the console also the person. */
  const tokens = new Map<string, { owners: readonly string[]; ends: Map<() => void, string> }>()
  let off: (() => void)[] = []

  async function check(changed?: ReadonlySet<string>): Promise<void> {
    const ids = [...tokens]
      .filter(([, { owners }]) => !changed || owners.some((one) => changed.has(one)))
      .map(([id]) => id)
    if (ids.length === 0) return
    // While the database is down, tokens can't be checked, and streams get no data either.
    const live = await liveTokens(db, ids).catch(() => null)
    if (!live) return
    for (const id of ids) {
      for (const [end, rights] of tokens.get(id)?.ends ?? []) if (live.get(id) !== rights) end()
    }
  }

  // A burst of events, as when a token and all its children are revoked, causes one check.
  let changed = new Set<string>()
  function checkSoon(owner: string): void {
    if (changed.size === 0) setImmediate(checkChanged)
    changed.add(owner)
  }
  function checkChanged(): void {
    const owners = changed
    changed = new Set()
    void check(owners)
  }

  function begin(): void {
    const timers = [
      setInterval(() => void check(), checkMs),
      setInterval(() => notifications.connected || void check(), unheardCheckMs),
    ]
    off = [
      () => timers.forEach(clearInterval),
      notifications.on('event', ({ type, accountId }) => {
        if (changesTokens(type)) checkSoon(accountId)
      }),
      notifications.on('session', checkSoon),
      notifications.on('reconnected', () => void check()),
    ]
  }

  return (actor, end) => {
    const { tokenId, accountId, userId } = actor
    if (tokens.size === 0) begin()
    const owners = userId ? [accountId, userId] : [accountId]
    const entry = tokens.get(tokenId) ?? { owners, ends: new Map() }
    entry.ends.set(end, rightsOf(actor))
    tokens.set(tokenId, entry)
    return () => {
      entry.ends.delete(end)
      if (entry.ends.size > 0 || tokens.get(tokenId) !== entry) return
      tokens.delete(tokenId)
      if (tokens.size === 0) for (const stop of off.splice(0)) stop()
    }
  }
}
