// The tokens that requests come with, kept in memory until the database says that one changed.
import { LRUCache } from 'lru-cache'
import type { Database } from '../../platform/database/database.ts'
import type { Notifications } from '../../platform/database/notifications.ts'
import { inGroups, newDatabaseWait } from '../../platform/database/pool.ts'
import { hashToken } from '../../platform/secrets/secrets.ts'
import { changesTokens, type Scope, type ZoneParts } from '../identity/index.ts'
import { createLookUps } from './look-ups.ts'
import { selectTokens, updateLastUses } from './statements.ts'

export type KnownToken = {
  id: string
  accountId: string
  scopes: readonly Scope[]
  projectIds: readonly string[]
  zoneParts: ZoneParts
  expiresAt: Date | null
  revokedAt: Date | null
  accountSuspended: boolean
  /** The person at the console that the token serves. */
  userId: string | null
}

export type TokenDirectory = {
  /** A token used within the last minute, without the database: nearly every request passes here. */
  findKnown(token: string): KnownToken | undefined
  /** Asks the database; `paced` for a caller that sends many unknown tokens, who then waits a little. */
  find(token: string, paced: boolean): Promise<KnownToken | null>
  /** Takes effect before the response that revoked a token; other replicas hear of it by notification. */
  forgetAccount(accountId: string): void
  /** The same for the tokens of a person's consoles, when a session ends. */
  forgetPerson(userId: string): void
  noteUse(tokenId: string): void
  close(): Promise<void>
}

const flushIntervalMs = 10_000
const paceMs = 50

export function createTokenDirectory(db: Database, notifications: Notifications): TokenDirectory {
  // Unknown tokens are not kept: guessing must not push real ones out.
  const known = new LRUCache<string, KnownToken>({ max: 20_000, ttl: 60_000 })
  const uses = new Map<string, Date>()
  let generation = 0

  function forget(matches: (token: KnownToken) => boolean): void {
    generation++
    for (const [hash, token] of known) if (matches(token)) known.delete(hash)
  }

  // A token may take hundreds with it when it is revoked, and each has its event: they are forgotten in one pass. So are
  // those of people, of whom many sessions may end at once.
  const changed = new Set<string>()
  function forgetChanged(): void {
    forget(({ accountId, userId }) => changed.has(accountId) || (userId !== null && changed.has(userId)))
    changed.clear()
  }
  function forgetSoon(owner: string): void {
    generation++
    if (changed.size === 0) setImmediate(forgetChanged)
    changed.add(owner)
  }

  const off = [
    notifications.on('event', ({ type, accountId }) => {
      if (changesTokens(type)) forgetSoon(accountId)
    }),
    notifications.on('session', forgetSoon),
    // A revocation may have been missed while nobody listened.
    notifications.on('lost', () => forget(() => true)),
    notifications.on('reconnected', () => forget(() => true)),
  ]

  async function flush(): Promise<void> {
    if (uses.size === 0) return
    const ids = [...uses.keys()]
    const times = ids.map((id) => uses.get(id)!.toISOString())
    uses.clear()
    await updateLastUses(db, { ids, times })
  }
  // When the database is away, the time of use is not worth an error.
  const timer = setInterval(() => flush().catch(() => {}), flushIntervalMs)
  timer.unref()

  async function read(hashes: string[]): Promise<Map<string, KnownToken>> {
    const before = generation
    // For all who wait, so it counts for no group of one of them.
    const rows = await inGroups([], () => selectTokens(db, { hashes }), newDatabaseWait())
    const found = new Map(
      rows.map(({ hash, suspendedAt, ...token }) => [hash, { ...token, accountSuspended: suspendedAt !== null }]),
    )
    // A change that came in while this was read would be overwritten by what was read before it.
    if (notifications.connected && generation === before) for (const [key, token] of found) known.set(key, token)
    return found
  }
  // One query at a time for all tokens that wait, so guessing cannot take all connections; and where many of an
  // address were wrong, few queries for all such addresses. A good token is always found.
  const prompt = createLookUps(read, 0)
  const paced = createLookUps(read, paceMs)
  const keyOf = (token: string) => hashToken(token).toString('base64')

  return {
    findKnown: (token) => known.get(keyOf(token)),
    find: (token, slowly) => (slowly ? paced : prompt)(keyOf(token)),
    forgetAccount: (accountId) => forget((token) => token.accountId === accountId),
    forgetPerson: (userId) => forget((token) => token.userId === userId),
    noteUse(tokenId) {
      uses.set(tokenId, new Date())
    },
    async close() {
      clearInterval(timer)
      for (const stop of off) stop()
      await flush().catch(() => {})
    },
  }
}
