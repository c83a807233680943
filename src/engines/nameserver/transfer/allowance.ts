// Limits how much customers' secondaries may transfer: each transfer of a whole zone takes time on the event loop.

// Per minute and account: 20 whole zones, or 600 differences.
const maxPerMinute = 600
const costOfWhole = 30

type Key = { id?: string; accountId?: string }

/** Whether a key may transfer something now; those of the platform always may. `onUsed` is called once a minute. */
export function createAllowance(now: () => number, onUsed: (id: string) => void = () => {}) {
  const spent = new Map<string, number>()
  const used = new Set<string>()
  let minute = 0
  return ({ id, accountId }: Key, whole: boolean): boolean => {
    if (id === undefined || accountId === undefined) return true
    const current = Math.floor(now() / 60)
    if (current !== minute) {
      spent.clear()
      used.clear()
    }
    minute = current
    if (!used.has(id)) onUsed(id)
    used.add(id)
    const cost = (spent.get(accountId) ?? 0) + (whole ? costOfWhole : 1)
    if (cost > maxPerMinute) return false
    spent.set(accountId, cost)
    return true
  }
}
