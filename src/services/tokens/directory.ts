// The tokens that requests come with, kept in memory until the database says that one changed.
import { LRUCache } from 'lru-cache'
import type { Token } from '../../generated/client.ts'
import type { Database } from '../../platform/database.ts'
import type { Notifications } from '../../platform/notifications.ts'
import { hashToken } from '../../platform/secrets.ts'
import type { Scope } from './actor.ts'
import { updateLastUses } from './statements.ts'

export type KnownToken = Pick<Token, 'id' | 'accountId' | 'projectIds' | 'expiresAt' | 'revokedAt'> & {
  scopes: Scope[]
  accountSuspended: boolean
}

export type TokenDirectory = {
  /** At once when it is known, which it nearly always is: every request passes here. */
  find(token: string): KnownToken | null | Promise<KnownToken | null>
  /** Takes effect before the response that revoked a token; other replicas hear of it by notification. */
  forgetAccount(accountId: string): void
  noteUse(tokenId: string): void
  close(): Promise<void>
}

const flushIntervalMs = 10_000

const select = {
  id: true,
  accountId: true,
  scopes: true,
  projectIds: true,
  expiresAt: true,
  revokedAt: true,
  account: { select: { suspendedAt: true } },
}

export function createTokenDirectory(db: Database, notifications: Notifications): TokenDirectory {
  // Unknown tokens are not kept: guessing must not push real ones out.
  const known = new LRUCache<string, KnownToken>({ max: 20_000, ttl: 60_000 })
  const uses = new Map<string, Date>()
  let generation = 0

  function forget(matches: (token: KnownToken) => boolean): void {
    generation++
    for (const [hash, token] of known) if (matches(token)) known.delete(hash)
  }

  // A token may take hundreds with it when it is revoked, and each has its event: they are forgotten in one pass.
  const changed = new Set<string>()
  function forgetChanged(): void {
    forget(({ accountId }) => changed.has(accountId))
    changed.clear()
  }

  const off = [
    notifications.on('event', ({ type, accountId }) => {
      if (!type.startsWith('token.') && !type.startsWith('account.')) return
      generation++
      if (changed.size === 0) setImmediate(forgetChanged)
      changed.add(accountId)
    }),
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

  async function read(hash: Buffer, key: string): Promise<KnownToken | null> {
    const before = generation
    const row = await db.token.findFirst({ where: { hash: Uint8Array.from(hash) }, select })
    if (!row) return null
    const { account, ...token } = row
    const found = { ...token, scopes: token.scopes as Scope[], accountSuspended: account.suspendedAt !== null }
    // A change that came in while this was read would be overwritten by what was read before it.
    if (notifications.connected && generation === before) known.set(key, found)
    return found
  }

  return {
    find(token) {
      const hash = hashToken(token)
      const key = hash.toString('base64')
      return known.get(key) ?? read(hash, key)
    },
    forgetAccount: (accountId) => forget((token) => token.accountId === accountId),
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
