// A connection pool that no group of work can use up: each group has its share, and work that waits too long is refused.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Socket } from 'node:net'
import pg from 'pg'

/** How long a statement may run and wait for a lock, and how long work may wait for a connection. */
export type PoolLimits = { statementMs: number; lockMs: number; waitMs: number }

export type PoolClass = keyof typeof classes

const classes = {
  /** Callers are waiting, so it is better to fail soon. */
  requests: { statementMs: 10_000, lockMs: 1_000, waitMs: 3_000 },
  /** Jobs, webhooks, and the tables of edge and nameserver: nobody is waiting, and all are retried. */
  workers: { statementMs: 30_000, lockMs: 10_000, waitMs: 10_000 },
  /** Large zones, which have their own connections. */
  zones: { statementMs: 15_000, lockMs: 10_000, waitMs: 10_000 },
  readiness: { statementMs: 1_500, lockMs: 1_000, waitMs: 2_000 },
} satisfies Record<string, PoolLimits>

const connectMs = 5_000
const idleMs = 30_000
// A connection that was cut silently delivers nothing, neither the result nor PostgreSQL's own timeout.
const silenceMs = 2_000
// A wait this short needs no timer, and with this little time left a try isn't worthwhile.
const slackMs = 100
// The share of a pool that one group may use. The rest serves others while a table of that group is locked.
const shareOfPool = 0.6

/** A code, because Prisma replaces the error with its own. */
export const poolFullCode = 'POOL_FULL'

/**
 * How long a request has been waiting for the database. Waiting for a connection, connecting and waiting for a result count
 * together, over all its statements: with a separate limit for each, a request has taken 25 s. `isOver` means that the
 * response is being sent, so the remaining work may take any time.
 */
export type DatabaseWait = { sinceMs: number | null; isOver: boolean }

export const newDatabaseWait = (): DatabaseWait => ({ sinceMs: null, isOver: false })

type Context = { groups: readonly string[]; wait: DatabaseWait | null }

const contexts = new AsyncLocalStorage<Context>()

/**
 * Runs `work`, whose connections count toward these groups. None of them gets more than its share of the pool. `a/b` is a
 * subgroup of `a` and gets a share of its share; the work names both.
 */
export function inGroups<T>(names: readonly string[], work: () => T, wait: DatabaseWait | null = null): T {
  return contexts.run({ groups: names, wait }, work)
}

/** Counts waiting for work that is shared with others like waiting for a statement of one's own. */
export async function countWait<T>(work: Promise<T>): Promise<T> {
  const wait = contexts.getStore()?.wait
  if (!wait) return work
  wait.sinceMs ??= performance.now()
  const result = await work
  wait.sinceMs = null
  return result
}

type Share = { max: number; inUse: number }
type Callback = (error: Error | undefined, client: pg.PoolClient | undefined, done: (release?: unknown) => void) => void
type Waiting = { callback: Callback; wait: DatabaseWait | null; timer: NodeJS.Timeout }
type Use = { shares: Share[]; unwatch(): void }
/** Work of the same groups: their shares, starting with that of the whole pool, and what is waiting for them. */
type Queue = { shares: [Share, ...Share[]]; waiting: Set<Waiting> }

export type PoolOptions = { url: string; size: number; class: PoolClass; limits?: Partial<PoolLimits> | undefined }

export class Pool extends pg.Pool {
  readonly #total: Share
  readonly #shares = new Map<string, Share>()
  readonly #queues = new Map<string, Queue>()
  readonly #uses = new Map<pg.PoolClient, Use>()
  readonly #waitMs: number
  readonly #maxSilenceMs: number
  #waiting = 0

  constructor({ url, size, class: name, limits }: PoolOptions, settings: pg.PoolConfig = {}) {
    const { statementMs, lockMs, waitMs } = { ...classes[name], ...limits }
    super({
      connectionString: url,
      max: size,
      connectionTimeoutMillis: connectMs,
      idleTimeoutMillis: idleMs,
      statement_timeout: statementMs,
      lock_timeout: lockMs,
      ...settings,
    })
    this.#total = { max: size, inUse: 0 }
    this.#waitMs = waitMs
    this.#maxSilenceMs = statementMs + silenceMs
    // The pool replaces an idle connection that breaks. Without a listener, the error would end the process.
    this.on('error', () => {})
    this.on('connect', (client) => {
      // The same for one that breaks while it is in use and nobody listens.
      client.on('error', () => {})
      endWhenSilent(client, this.#maxSilenceMs)
    })
    this.on('release', (_error, client) => this.#released(client))
  }

  /** For metrics: how many connections are in use or idle, and how much work is waiting for one. */
  get usage(): { size: number; inUse: number; idle: number; waiting: number } {
    return { size: this.#total.max, inUse: this.#total.inUse, idle: this.idleCount, waiting: this.#waiting }
  }

  override connect(): Promise<pg.PoolClient>
  override connect(callback: Callback): void
  override connect(callback?: Callback): Promise<pg.PoolClient> | undefined {
    if (!callback) {
      return new Promise((resolve, reject) => {
        this.connect((error, client) => (client ? resolve(client) : reject(error)))
      })
    }
    const { groups, wait } = contexts.getStore() ?? { groups: [], wait: null }
    const leftMs = this.#remainingMs(wait)
    if (leftMs <= slackMs) {
      process.nextTick(callback, silenceError(), undefined, () => {})
      return undefined
    }
    const queue = this.#queueOf(groups)
    if (queue.waiting.size === 0 && hasCapacity(queue)) this.#open(queue.shares, callback, wait)
    else {
      const timer = setTimeout(() => this.#refuse(queue, waiting), Math.min(this.#waitMs, leftMs))
      const waiting: Waiting = { callback, wait, timer }
      queue.waiting.add(waiting)
      this.#waiting++
    }
    return undefined
  }

  #queueOf(names: readonly string[]): Queue {
    const key = names.join(' ')
    let queue = this.#queues.get(key)
    if (!queue) {
      queue = { shares: [this.#total, ...names.map((name) => this.#shareOf(name))], waiting: new Set() }
      this.#queues.set(key, queue)
    }
    return queue
  }

  #shareOf(name: string): Share {
    let share = this.#shares.get(name)
    if (!share) {
      const end = name.lastIndexOf('/')
      const { max } = end < 0 ? this.#total : this.#shareOf(name.slice(0, end))
      share = { max: Math.max(1, Math.min(max - 1, Math.ceil(max * shareOfPool))), inUse: 0 }
      this.#shares.set(name, share)
    }
    return share
  }

  /** How long a request may still wait, counted from its first wait; unlimited without one. */
  #remainingMs(wait: DatabaseWait | null): number {
    if (!wait || wait.isOver) return Number.POSITIVE_INFINITY
    wait.sinceMs ??= performance.now()
    return wait.sinceMs + this.#maxSilenceMs - performance.now()
  }

  #open(shares: Share[], callback: Callback, wait: DatabaseWait | null): void {
    for (const share of shares) share.inUse++
    let answer: Callback | null = callback
    const timer = this.#limit(wait, () => {
      answer = null
      callback(silenceError(), undefined, () => {})
    })
    super.connect((error, client, done) => {
      clearTimeout(timer)
      if (client) this.#uses.set(client, { shares, unwatch: this.#watch(client, wait) })
      else this.#free(shares)
      if (answer) answer(error, client, done)
      // The caller has given up, so the connection goes to the next one.
      else done()
    })
  }

  /** Calls `end` when a request has waited too long. Needs no timer at first, when the other limits are shorter. */
  #limit(wait: DatabaseWait | null, end: () => void): NodeJS.Timeout | undefined {
    const leftMs = this.#remainingMs(wait)
    return leftMs > this.#maxSilenceMs - slackMs ? undefined : setTimeout(end, leftMs)
  }

  /** Ends the wait when the connection receives its first byte. Returns a function that stops watching. */
  #watch(client: pg.PoolClient, wait: DatabaseWait | null): () => void {
    if (!wait || wait.isOver) return () => {}
    const stream = streamOf(client)
    const timer = this.#limit(wait, () => endQuery(client))
    const stopWait = () => {
      clearTimeout(timer)
      wait.sinceMs = null
    }
    stream.once('data', stopWait)
    return () => {
      clearTimeout(timer)
      stream.off('data', stopWait)
    }
  }

  #released(client: pg.PoolClient): void {
    const use = this.#uses.get(client)
    if (!use) return
    this.#uses.delete(client)
    use.unwatch()
    this.#free(use.shares)
  }

  #free(shares: Share[]): void {
    for (const share of shares) share.inUse--
    // After the pool has noted that the connection is free or closed.
    if (this.#waiting > 0) process.nextTick(() => this.#next())
  }

  /** Serves the group that uses the fewest connections, so that groups that hang don't block the others. */
  #next(): void {
    while (this.#waiting > 0) {
      let next: Queue | null = null
      for (const queue of this.#queues.values()) {
        if (queue.waiting.size > 0 && hasCapacity(queue) && (!next || connectionsOf(queue) < connectionsOf(next)))
          next = queue
      }
      if (!next) return
      const waiting = next.waiting.values().next().value!
      this.#leave(next, waiting)
      clearTimeout(waiting.timer)
      this.#open(next.shares, waiting.callback, waiting.wait)
    }
  }

  #leave(queue: Queue, waiting: Waiting): void {
    queue.waiting.delete(waiting)
    this.#waiting--
  }

  #refuse(queue: Queue, waiting: Waiting): void {
    this.#leave(queue, waiting)
    // If no work has a connection, the pool isn't full: the database is unreachable.
    const error =
      this.#uses.size === 0
        ? new Error('Connection terminated: none could be made in time')
        : Object.assign(new Error('every connection to the database is in use'), { code: poolFullCode })
    waiting.callback(error, undefined, () => {})
  }
}

function hasCapacity({ shares }: Queue): boolean {
  return shares.every(({ inUse, max }) => inUse < max)
}

function connectionsOf({ shares: [, group] }: Queue): number {
  return group?.inUse ?? 0
}

function silenceError(): Error {
  return new Error('Connection terminated: the database said nothing for too long')
}

function streamOf(client: pg.PoolClient): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream
}

/** Closes a connection that receives nothing during a query, which makes the query fail. */
function endWhenSilent(client: pg.PoolClient, maxSilenceMs: number): void {
  // Not through the callback of `setTimeout`, which only runs for the first timeout, that of an idle connection.
  streamOf(client)
    .setTimeout(maxSilenceMs)
    .on('timeout', () => endQuery(client))
}

function endQuery(client: pg.PoolClient): void {
  const { readyForQuery } = client as unknown as { readyForQuery: boolean }
  if (!readyForQuery) streamOf(client).destroy(silenceError())
}
