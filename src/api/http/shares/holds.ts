// How many waits and streams of an account this server may have open, so that all servers together stay within the
// account's quota. A single server may use all of it.
import { countWait } from '../../../platform/database/pool.ts'
import type { OpenKind, SharedLimits } from '../../../services/limits/index.ts'

type Hold = {
  owner: string
  kind: OpenKind
  /** How many the other servers count for this one. */
  granted: number
  /** Serializes changes of one hold, so that the last one wins. */
  last: Promise<unknown>
  lowering: NodeJS.Timeout | undefined
}

type Raise = { owner: string; kind: OpenKind; max: number }

export type Holds = {
  /** Calls `enter` with what the account has on other servers and may have on this one; throws what that throws. */
  raise(raise: Raise, enter: (elsewhere: number, mayHave: number) => void): Promise<void>
  /** One has closed. */
  lower(owner: string, kind: OpenKind): void
}

// Released capacity is kept for a moment, so that repeated waits ask once.
const keptMs = 100

/** `openOf`: what the account has open on this server. */
export function createHolds(shared: SharedLimits, openOf: (owner: string, kind: OpenKind) => number): Holds {
  const holds = new Map<string, Hold>()

  function holdOf(owner: string, kind: OpenKind): Hold {
    const key = `${kind} ${owner}`
    const found = holds.get(key)
    if (found) return found
    const hold = { owner, kind, granted: 0, last: Promise.resolve(), lowering: undefined }
    holds.set(key, hold)
    return hold
  }

  function inTurn<T>(hold: Hold, work: () => Promise<T>): Promise<T> {
    const turn = hold.last.then(work)
    hold.last = turn.catch(() => {})
    return turn
  }

  /** Reports how many are open; nobody may refuse that. */
  function settle(hold: Hold): void {
    hold.lowering ??= setTimeout(() => {
      hold.lowering = undefined
      void inTurn(hold, async () => {
        const { owner: accountId, kind } = hold
        const wanted = openOf(accountId, kind)
        if (shared.members > 1 && wanted !== hold.granted) {
          const { granted } = await shared.hold({ accountId, kind, wanted, most: Number.POSITIVE_INFINITY })
          hold.granted = granted
        }
        if (wanted === 0 && openOf(accountId, kind) === 0) holds.delete(`${kind} ${accountId}`)
      }).catch(() => settle(hold))
    }, keptMs).unref()
  }

  // A server that was alone has reported nothing, and one that is alone now must forget what counts later.
  shared.onMembers(() => {
    for (const hold of holds.values()) {
      if (shared.members === 1) hold.granted = 0
      else settle(hold)
    }
  })

  return {
    raise({ owner: accountId, kind, max }, enter) {
      const hold = holdOf(accountId, kind)
      return inTurn(hold, async () => {
        try {
          const here = openOf(accountId, kind)
          if (shared.members === 1 || here < Math.min(hold.granted, max)) return enter(0, max)
          const asked = shared.hold({ accountId, kind, wanted: here + 1, most: max })
          const held = await countWait(asked).catch(() => null)
          // This server then counts alone.
          if (!held) return enter(0, max)
          hold.granted = held.granted
          enter(held.elsewhere, Math.min(held.granted, max))
        } finally {
          if (openOf(accountId, kind) !== hold.granted) settle(hold)
        }
      })
    },
    lower: (owner, kind) => settle(holdOf(owner, kind)),
  }
}
