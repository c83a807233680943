// How often somebody may guess a password of a project: by address, and less often once many addresses guess wrong.
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { clientOf } from '../../../platform/http/client-address.ts'

export type Tries = {
  /** Counts a guess before it is known to be wrong; how many seconds to wait, or null if it may be made. */
  take(projectId: string, address: string): number | null
  /** It was right. */
  giveBack(projectId: string, address: string): void
}

const windowMs = 15 * 60_000
// So many wrong guesses of all addresses are an attack. An address that has not guessed yet may still do so: whoever
// knows the password gets in, whatever strangers do.
const perProject = 300
const perAddressUnderAttack = 2
const maxKept = 20_000
// By size: with `max` each would reserve its whole memory at once.
const bound = { maxSize: maxKept, sizeCalculation: () => 1 }

export function createTries(perAddress = 10): Tries {
  const addresses = new LRUCache<string, Count>(bound)
  // In a place of its own, so that no number of addresses makes it forget an attack.
  const projects = new LRUCache<string, Count>(bound)
  const keyOf = (projectId: string, address: string) => `${projectId} ${clientOf(address)}`

  return {
    take(projectId, address) {
      const own = countOf(addresses, keyOf(projectId, address))
      const all = countOf(projects, projectId)
      if (own.count >= (all.count >= perProject ? perAddressUnderAttack : perAddress)) {
        return Math.max(1, Math.ceil((own.untilMs - Date.now()) / 1000))
      }
      own.count++
      all.count++
      return null
    },
    giveBack(projectId, address) {
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

/** What came, from where, for which project; `isRight`: whether it opens what was asked for. */
export type Shown = { projectId: string; address: string; credentials: string; isRight: boolean }

/**
 * The same for credentials that come with every request: those that were wrong before count once, since a browser
 * repeats them for every picture, and those that were right from this address are let in whatever others there guess.
 */
export function createCredentialTries() {
  // No slow hash is spent on these, and an office behind one address mistypes more often than a person.
  const tries = createTries(30)
  const known = new LRUCache<string, true>(bound)

  /** True and false as it is; otherwise how many seconds to wait. */
  return ({ projectId, address, credentials, isRight }: Shown): boolean | number => {
    const key = hash('sha256', `${isRight} ${projectId} ${clientOf(address)} ${credentials}`, 'base64')
    if (known.get(key)) return isRight
    const wait = tries.take(projectId, address)
    // Nobody learns whether this one was right.
    if (wait !== null) return wait
    if (isRight) tries.giveBack(projectId, address)
    known.set(key, true)
    return isRight
  }
}
