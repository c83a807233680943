// A pool of connections that no group of work can hold alone: each has its share, and what waits too long is refused.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Socket } from 'node:net'
import pg from 'pg'

/** How long a statement may run and wait for a lock, and how long work waits for a connection. */
export type PoolLimits = { statementMs: number; lockMs: number; waitMs: number }

export type PoolClass = keyof typeof classes

const classes = {
  /** Callers wait for these, so one that cannot be answered soon is told so. */
  requests: { statementMs: 10_000, lockMs: 1_000, waitMs: 3_000 },
  /** Jobs, webhooks and the tables of edge and nameserver: nobody waits, and all are tried again. */
  workers: { statementMs: 30_000, lockMs: 10_000, waitMs: 10_000 },
  /** Large zones, on connections of their own. */
  zones: { statementMs: 15_000, lockMs: 10_000, waitMs: 10_000 },
  readiness: { statementMs: 1_500, lockMs: 1_000, waitMs: 2_000 },
} satisfies Record<string, PoolLimits>

const connectMs = 5_000
const idleMs = 30_000
// Of a connection that is cut without a word, nothing comes: neither the answer nor PostgreSQL's own timeout.
const silenceMs = 2_000
// What counts as nothing: a silence this short needs no timer of its own, and what is left of one is too short to try.
const slackMs = 100
// What one group may hold of a pool. The rest answers the others while a table of the group is locked.
const shareOfPool = 0.6

/** By its code, because Prisma throws an error of its own instead. */
export const poolFullCode = 'POOL_FULL'

/**
 * Since when a request has heard nothing from the database. Waiting for a connection, connecting and waiting for an answer
 * count together, over all its statements: with a limit for each alone, a request has taken 25 s. `isOver`: the response
 * is being sent, and what still goes on may take as long as it takes.
 */
export type Silence = { sinceMs: number | null; isOver: boolean }

export const newSilence = (): Silence => ({ sinceMs: null, isOver: false })

type Context = { groups: readonly string[]; silence: Silence | null }

const contexts = new AsyncLocalStorage<Context>()

/**
 * Runs `work`, whose connections count for these groups: none of them gets more than its share of a pool. `a/b` is a
 * group within `a`, and gets its share of the share of `a`; the work names both.
 */
export function inGroups<T>(names: readonly string[], work: () => T, silence: Silence | null = null): T {
  return contexts.run({ groups: names, silence }, work)
}

/** Counts the wait for work that is shared with others as that of a statement of the caller's own. */
export async function inSilence<T>(work: Promise<T>): Promise<T> {
  const silence = contexts.getStore()?.silence
  if (!silence) return work
  silence.sinceMs ??= performance.now()
  const result = await work
  silence.sinceMs = null
  return result
}

type Share = { most: number; held: number }
type Callback = (error: Error | undefined, client: pg.PoolClient | undefined, done: (release?: unknown) => void) => void
type Waiting = { callback: Callback; silence: Silence | null; timer: NodeJS.Timeout }
type Held = { shares: Share[]; unwatch(): void }
/** The work of the same groups: the shares it takes from, that of the whole pool first, and what waits for them. */
type Line = { shares: [Share, ...Share[]]; waiting: Set<Waiting> }

export type PoolOptions = { url: string; size: number; class: PoolClass; limits?: Partial<PoolLimits> | undefined }

export class Pool extends pg.Pool {
  readonly #whole: Share
  readonly #shares = new Map<string, Share>()
  readonly #lines = new Map<string, Line>()
  readonly #holding = new Map<pg.PoolClient, Held>()
  readonly #waitMs: number
  readonly #silentMs: number
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
    this.#whole = { most: size, held: 0 }
    this.#waitMs = waitMs
    this.#silentMs = statementMs + silenceMs
    // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
    this.on('error', () => {})
    this.on('connect', (client) => {
      // The same for one that breaks while it is held and nobody listens.
      client.on('error', () => {})
      endWhenSilent(client, this.#silentMs)
    })
    this.on('release', (_error, client) => this.#giveBack(client))
  }

  /** For metrics: what is held, what is open and idle, and how much work waits for a connection. */
  get usage(): { size: number; held: number; idle: number; waiting: number } {
    return { size: this.#whole.most, held: this.#whole.held, idle: this.idleCount, waiting: this.#waiting }
  }

  override connect(): Promise<pg.PoolClient>
  override connect(callback: Callback): void
  override connect(callback?: Callback): Promise<pg.PoolClient> | undefined {
    if (!callback) {
      return new Promise((resolve, reject) => {
        this.connect((error, client) => (client ? resolve(client) : reject(error)))
      })
    }
    const { groups, silence } = contexts.getStore() ?? { groups: [], silence: null }
    const leftMs = this.#leftOf(silence)
    if (leftMs <= slackMs) {
      process.nextTick(callback, saidNothing(), undefined, () => {})
      return undefined
    }
    const line = this.#lineOf(groups)
    if (line.waiting.size === 0 && hasRoom(line)) this.#open(line.shares, callback, silence)
    else {
      const timer = setTimeout(() => this.#refuse(line, waiting), Math.min(this.#waitMs, leftMs))
      const waiting: Waiting = { callback, silence, timer }
      line.waiting.add(waiting)
      this.#waiting++
    }
    return undefined
  }

  #lineOf(names: readonly string[]): Line {
    const key = names.join(' ')
    let line = this.#lines.get(key)
    if (!line) {
      line = { shares: [this.#whole, ...names.map((name) => this.#shareOf(name))], waiting: new Set() }
      this.#lines.set(key, line)
    }
    return line
  }

  #shareOf(name: string): Share {
    let share = this.#shares.get(name)
    if (!share) {
      const end = name.lastIndexOf('/')
      const { most } = end < 0 ? this.#whole : this.#shareOf(name.slice(0, end))
      share = { most: Math.max(1, Math.min(most - 1, Math.ceil(most * shareOfPool))), held: 0 }
      this.#shares.set(name, share)
    }
    return share
  }

  /** How long a request may still hear nothing, from its first wait on; without one, as long as each limit says. */
  #leftOf(silence: Silence | null): number {
    if (!silence || silence.isOver) return Number.POSITIVE_INFINITY
    silence.sinceMs ??= performance.now()
    return silence.sinceMs + this.#silentMs - performance.now()
  }

  #open(shares: Share[], callback: Callback, silence: Silence | null): void {
    for (const share of shares) share.held++
    let answer: Callback | null = callback
    const timer = this.#limit(silence, () => {
      answer = null
      callback(saidNothing(), undefined, () => {})
    })
    super.connect((error, client, done) => {
      clearTimeout(timer)
      if (client) this.#holding.set(client, { shares, unwatch: this.#watch(client, silence) })
      else this.#free(shares)
      if (answer) answer(error, client, done)
      // Nobody waits for it any more; the next one gets it.
      else done()
    })
  }

  /** Runs `end` when the silence of a request has lasted too long; at first, the limits of the parts are sooner. */
  #limit(silence: Silence | null, end: () => void): NodeJS.Timeout | undefined {
    const leftMs = this.#leftOf(silence)
    return leftMs > this.#silentMs - slackMs ? undefined : setTimeout(end, leftMs)
  }

  /** Has the silence of a request end with the first octet that its connection brings. Returns what ends the watch. */
  #watch(client: pg.PoolClient, silence: Silence | null): () => void {
    if (!silence || silence.isOver) return () => {}
    const stream = streamOf(client)
    const timer = this.#limit(silence, () => endQuery(client))
    const heard = () => {
      clearTimeout(timer)
      silence.sinceMs = null
    }
    stream.once('data', heard)
    return () => {
      clearTimeout(timer)
      stream.off('data', heard)
    }
  }

  #giveBack(client: pg.PoolClient): void {
    const held = this.#holding.get(client)
    if (!held) return
    this.#holding.delete(client)
    held.unwatch()
    this.#free(held.shares)
  }

  #free(shares: Share[]): void {
    for (const share of shares) share.held--
    // After the pool has noted that the connection is free, or gone.
    if (this.#waiting > 0) process.nextTick(() => this.#next())
  }

  /** What is free goes to the group that holds least: several that hang do not shut the others out. */
  #next(): void {
    while (this.#waiting > 0) {
      let next: Line | null = null
      for (const line of this.#lines.values()) {
        if (line.waiting.size > 0 && hasRoom(line) && (!next || heldBy(line) < heldBy(next))) next = line
      }
      if (!next) return
      const waiting = next.waiting.values().next().value!
      this.#leave(next, waiting)
      clearTimeout(waiting.timer)
      this.#open(next.shares, waiting.callback, waiting.silence)
    }
  }

  #leave(line: Line, waiting: Waiting): void {
    line.waiting.delete(waiting)
    this.#waiting--
  }

  #refuse(line: Line, waiting: Waiting): void {
    this.#leave(line, waiting)
    // Where nobody has a connection, it is not because others hold them.
    const error =
      this.#holding.size === 0
        ? new Error('Connection terminated: none could be made in time')
        : Object.assign(new Error('every connection to the database is in use'), { code: poolFullCode })
    waiting.callback(error, undefined, () => {})
  }
}

function hasRoom({ shares }: Line): boolean {
  return shares.every(({ held, most }) => held < most)
}

function heldBy({ shares: [, group] }: Line): number {
  return group?.held ?? 0
}

function saidNothing(): Error {
  return new Error('Connection terminated: the database said nothing for too long')
}

function streamOf(client: pg.PoolClient): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream
}

/** Closes a connection on which nothing moves during a query; the query fails by that. */
function endWhenSilent(client: pg.PoolClient, silentMs: number): void {
  // Not by the callback of `setTimeout`, which hears the first timeout only: that of a connection that is idle.
  streamOf(client)
    .setTimeout(silentMs)
    .on('timeout', () => endQuery(client))
}

function endQuery(client: pg.PoolClient): void {
  const { readyForQuery } = client as unknown as { readyForQuery: boolean }
  if (!readyForQuery) streamOf(client).destroy(saidNothing())
}
