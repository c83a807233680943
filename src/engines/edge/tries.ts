// How often somebody may guess the password of previews: by address and project, and by project altogether.
import { LRUCache } from 'lru-cache'
import { clientOf } from '../../platform/client-address.ts'

export type Tries = {
  /** Counts a guess before it is known to be wrong; how many seconds to wait, or null if it may be made. */
  take(projectId: string, address: string): number | null
  /** It was right. */
  giveBack(projectId: string, address: string): void
}

const windowMs = 15 * 60_000
const perAddress = 10
// Of many addresses together; each guess costs this machine a slow hash.
const perProject = 300
const mostKept = 20_000

export function createTries(): Tries {
  const counts = new LRUCache<string, { count: number; untilMs: number }>({ max: mostKept })
  const keysOf = (projectId: string, address: string) =>
    [
      [`${projectId} ${clientOf(address)}`, perAddress],
      [projectId, perProject],
    ] as const

  function countOf(key: string) {
    const known = counts.get(key)
    if (known && known.untilMs > Date.now()) return known
    const fresh = { count: 0, untilMs: Date.now() + windowMs }
    counts.set(key, fresh)
    return fresh
  }

  return {
    take(projectId, address) {
      const taken = keysOf(projectId, address).map(([key, most]) => ({ of: countOf(key), most }))
      const full = taken.find(({ of, most }) => of.count >= most)
      if (full) return Math.max(1, Math.ceil((full.of.untilMs - Date.now()) / 1000))
      for (const { of } of taken) of.count++
      return null
    },
    giveBack(projectId, address) {
      for (const [key] of keysOf(projectId, address)) countOf(key).count = Math.max(0, countOf(key).count - 1)
    },
  }
}
