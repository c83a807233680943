// Limits concurrent transfers per key and per account, in order of arrival. Some more may wait, and the rest is refused, so
// that nobody's transfers use up everybody's time.

type Key = { name: string; accountId?: string }

/** `waiting` is per key. */
export type ShareLimits = { ofKey: number; ofAccount: number; waiting: number }

/** Must be called once, when a transfer ends. */
export type Leave = (end: 'complete' | 'aborted') => void

// A zone usually has two or three secondaries, which share one image of it.
const customers: ShareLimits = { ofKey: 2, ofAccount: 4, waiting: 16 }
// After a restart, its secondaries transfer every zone. The connection limit also limits how many wait.
const platform: ShareLimits = { ofKey: 16, ofAccount: 16, waiting: Number.POSITIVE_INFINITY }

const minHoldMs = 1_000
const maxHoldMs = 30_000

type Waiting = { name: string; start(): void }
type Share = {
  running: string[]
  waiting: Waiting[]
  /** How many transfers in a row each key has aborted. */
  aborted: Map<string, number>
}

const countOf = (names: readonly string[], name: string) => names.filter((one) => one === name).length

export type Delay = (run: () => void, ms: number) => void
export const delay: Delay = (run, ms) => void setTimeout(run, ms).unref()

export function createShares(later: Delay = delay, limits = { customers, platform }) {
  const shares = new Map<string, Share>()

  return {
    /** Resolves when the transfer may start, with a function to call at its end; null if too many wait, or the client left. */
    async enter({ name, accountId = '' }: Key, signal?: AbortSignal): Promise<Leave | null> {
      const { ofKey, ofAccount, waiting } = accountId === '' ? limits.platform : limits.customers
      const share: Share = shares.get(accountId) ?? { running: [], waiting: [], aborted: new Map() }
      const isFree = (of: string) => share.running.length < ofAccount && countOf(share.running, of) < ofKey

      function free(): void {
        share.running.splice(share.running.indexOf(name), 1)
        const next = share.waiting.findIndex((one) => isFree(one.name))
        if (next >= 0) share.waiting.splice(next, 1)[0]!.start()
        else if (share.running.length === 0) shares.delete(accountId)
      }

      // A client that starts transfers only to abort them costs a lookup each time, so its slot stays taken for a while.
      const leave: Leave = (end) => {
        if (end === 'complete' || accountId === '') {
          share.aborted.delete(name)
          return free()
        }
        const before = share.aborted.get(name) ?? 0
        share.aborted.set(name, before + 1)
        later(free, Math.min(maxHoldMs, minHoldMs * 2 ** before))
      }

      if (!isFree(name)) {
        const ahead = share.waiting.filter((one) => one.name === name).length
        if (signal?.aborted || ahead >= waiting) return null
        return new Promise((resolve) => {
          const gone = () => {
            share.waiting.splice(share.waiting.indexOf(one), 1)
            resolve(null)
          }
          const one: Waiting = {
            name,
            start() {
              signal?.removeEventListener('abort', gone)
              share.running.push(name)
              resolve(leave)
            },
          }
          share.waiting.push(one)
          signal?.addEventListener('abort', gone, { once: true })
        })
      }
      shares.set(accountId, share)
      share.running.push(name)
      return leave
    },
  }
}
