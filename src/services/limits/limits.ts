// Limits that all API processes of an installation share. Each counts for itself what it took beforehand in small
// slices, so that a request asks nobody; while the database is away, each counts alone.
import type { Logger } from 'pino'
import { inBatches } from '../../platform/batches.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Notifications } from '../../platform/database/notifications.ts'
import { inGroups, newDatabaseWait } from '../../platform/database/pool.ts'
import { randomLabel } from '../../platform/ids.ts'
import { createSlices, type Slices } from './slices.ts'
import { beat, deletePast, holdOpen, readElsewhere } from './statements.ts'

/** What a process holds open of an account: `granted` of what it wanted; the others hold `elsewhere`. */
export type Held = { granted: number; elsewhere: number }
export type OpenKind = 'waits' | 'streams'
export type Hold = { accountId: string; kind: OpenKind; wanted: number; most: number }

export type SharedLimits = {
  /** Processes that share the limits, this one included; 1 while the database is away: each counts alone then. */
  readonly members: number
  /** Called when it changes. */
  onMembers(listener: () => void): void
  take: Slices['take']
  /** Calls the listener with what other processes have taken of the keys that begin with the kind. */
  onTaken: Slices['onTaken']
  hold(hold: Hold): Promise<Held>
  /** What the other processes hold open of the account. */
  elsewhere(accountId: string): Promise<Record<OpenKind, number>>
  close(): Promise<void>
}

export type LimitsDeps = { db: Database; notifications: Notifications; log: Logger }

/** `id`: of this process among those that share limits. */
export type LimitsOptions = { id?: string | undefined; takeTimeoutMs?: number }

const beatMs = 1_000
// After a loss nobody is asked for so long, though a beat may be heard.
const aloneMs = 2_000
// Others count a process for five seconds after its last beat.
const beatTimeoutMs = 3_000
// As long as a request waits for a connection to the database.
const defaultTakeTimeoutMs = 3_000
const forgetMs = 60_000
const maxForgotten = 5_000
const highest = 2 ** 31 - 1

export const newMemberId = () => randomLabel(16)

/** Resolves when the others know of this process. */
export async function openLimits(
  { db, notifications, log }: LimitsDeps,
  { id = newMemberId(), takeTimeoutMs = defaultTakeTimeoutMs }: LimitsOptions = {},
): Promise<SharedLimits> {
  const listeners = new Set<() => void>()
  let members = 1
  let away = false
  let aloneUntilMs = 0
  let beating: Promise<void> | null = null
  const closing = new AbortController()

  function change(next: number): void {
    if (next === members) return
    members = next
    for (const listener of listeners) listener()
  }

  /** Nobody is asked from now on until a beat is heard again. */
  function lose(err: unknown): void {
    if (closing.signal.aborted) return
    if (!away) log.warn({ err }, 'limits are counted by this process alone, because the database does not answer')
    away = true
    aloneUntilMs = performance.now() + aloneMs
    change(1)
  }

  async function tryBeat(): Promise<void> {
    const late = setTimeout(() => lose(new Error('the database takes too long')), beatTimeoutMs)
    try {
      const [found] = await inGroups([], () => beat(db, { id }))
      if (closing.signal.aborted || performance.now() < aloneUntilMs) return
      if (away) log.info('limits are shared with the other processes again')
      away = false
      change(found!.members)
    } catch (err) {
      lose(err)
    } finally {
      clearTimeout(late)
    }
  }
  function beatOnce(): Promise<void> {
    beating ??= tryBeat().finally(() => {
      beating = null
    })
    return beating
  }

  const forget = () =>
    inBatches(closing.signal, async () => {
      const [{ count } = { count: 0 }] = await deletePast(db, { limit: maxForgotten })
      return { count, more: count === maxForgotten }
    })

  const slices = createSlices({ db, id, timeoutMs: takeTimeoutMs, lose })
  const off = notifications.on('limit', (text) => {
    const [what, member, rest] = split(text)
    if (member === id) return
    // One that is under way may be from before.
    if (what === 'joined') void Promise.resolve(beating).then(beatOnce)
    else slices.hear(rest)
  })
  const timers = [
    setInterval(() => void beatOnce(), beatMs),
    setInterval(() => void forget().catch(() => {}), forgetMs),
  ]
  for (const timer of timers) timer.unref()
  await beatOnce()

  return {
    get members() {
      return members
    },
    onMembers: (listener) => void listeners.add(listener),
    take: slices.take,
    onTaken: slices.onTaken,
    async hold({ accountId, kind, wanted, most }) {
      const values = { accountId, kind, member: id, wanted, most: Math.min(most, highest) }
      const [held] = await inGroups([], () => holdOpen(db, values), newDatabaseWait())
      return held!
    },
    async elsewhere(accountId) {
      if (members === 1) return { waits: 0, streams: 0 }
      const [found] = await readElsewhere(db, { accountId, member: id })
      return found!
    },
    async close() {
      closing.abort()
      off()
      timers.forEach(clearInterval)
      await beating
      change(1)
      await deleteMember(db, id).catch(() => {})
    },
  }
}

/** The process is gone: what it held is free at once. */
export async function deleteMember(db: Database, id: string): Promise<void> {
  await db.limitMember.deleteMany({ where: { id } })
}

/** The first two words, and the rest. */
function split(text: string): [string, string, string] {
  const first = text.indexOf(' ')
  const second = text.indexOf(' ', first + 1)
  if (second < 0) return [text.slice(0, first), text.slice(first + 1), '']
  return [text.slice(0, first), text.slice(first + 1, second), text.slice(second + 1)]
}
