// Limits guesses of a project's passwords, per address, and more strictly while many addresses guess wrong.
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { clientOf } from '../../../platform/http/client-address.ts'

export type AttemptLimits = {
  /** Counts a guess before it is checked. Returns how many seconds to wait, or null if it may be checked. */
  count(projectId: string, address: string): number | null
  /** Uncounts a correct guess. */
  refund(projectId: string, address: string): void
}

const windowMs = 15 * 60_000
// This many wrong guesses are an attack. New addresses may still guess, so attackers can't lock out people who know the
// password.
const perProject = 300
const perAddressUnderAttack = 2
const maxEntries = 20_000
// Limited by size, because `max` would reserve all of the memory at once.
const cacheSize = { maxSize: maxEntries, sizeCalculation: () => 1 }

export function createAttemptLimits(perAddress = 10): AttemptLimits {
  const addresses = new LRUCache<string, Count>(cacheSize)
  // A separate cache, so that many addresses can't evict the count of an attack.
  const projects = new LRUCache<string, Count>(cacheSize)
  const keyOf = (projectId: string, address: string) => `${projectId} ${clientOf(address)}`

  return {
    count(projectId, address) {
      const own = countOf(addresses, keyOf(projectId, address))
      const all = countOf(projects, projectId)
      if (own.count >= (all.count >= perProject ? perAddressUnderAttack : perAddress)) {
        return Math.max(1, Math.ceil((own.untilMs - Date.now()) / 1000))
      }
      own.count++
      all.count++
      return null
    },
    refund(projectId, address) {
      for (const one of [countOf(addresses, keyOf(projectId, address)), countOf(projects, projectId)]) {
        one.count = Math.max(0, one.count - 1)
      }
    },
  }
}

type Count = { count: number; untilMs: number }

function countOf(counts: LRUCache<string, Count>, key: string): Count {
  const known = counts.get(key)
  if (known && known.untilMs > Date.now()) return known
  const fresh = { count: 0, untilMs: Date.now() + windowMs }
  counts.set(key, fresh)
  return fresh
}

export type CredentialAttempt = { projectId: string; address: string; credentials: string; isRight: boolean }

/**
 * Limits for credentials that come with every request. Equal wrong ones count once, since a browser repeats them for
 * every image. Ones that were correct from the same address stay admitted, whatever others behind it guess.
 */
export function createCredentialLimits() {
  // These cost no slow hash, and an office behind one address mistypes more often than one person.
  const attempts = createAttemptLimits(30)
  const known = new LRUCache<string, true>(cacheSize)

  /** Returns `isRight`, or how many seconds to wait. */
  return ({ projectId, address, credentials, isRight }: CredentialAttempt): boolean | number => {
    const key = hash('sha256', `${isRight} ${projectId} ${clientOf(address)} ${credentials}`, 'base64')
    if (known.get(key)) return isRight
    const wait = attempts.count(projectId, address)
    // Doesn't reveal whether this guess was right.
    if (wait !== null) return wait
    if (isRight) attempts.refund(projectId, address)
    known.set(key, true)
    return isRight
  }
}
