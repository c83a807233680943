// Receives database notifications on one connection per process, and passes them to listeners.
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import pg from 'pg'
import type { Logger } from 'pino'
import { randomLabel } from '../ids.ts'

export type EventNotice = { type: string; accountId: string; subject: string }

type Topics = {
  event: [EventNotice]
  job: [kind: string]
  log: [deploymentId: string]
  /** The records or the owner of a domain with this name changed, or the domain was added or removed. */
  zone: [name: string]
  /** The certificate for this name was replaced or removed. */
  certificate: [name: string]
  /** The http-01 challenge with this token was added or removed. */
  challenge: [token: string]
  /** Another API process started sharing the limits, or used some of them; `src/services/limits/limits.ts` defines the text. */
  limit: [text: string]
  /** An instance of this deployment's server was added, moved, removed, or changed its state. */
  instance: [deploymentId: string]
  /** The node with this id was asked to drain, or no longer. */
  node: [id: string]
  /** A session of this user has ended. */
  session: [userId: string]
  /** The key with this id was created or deleted. */
  dnsKey: [id: string]
  /** The connection was lost and is back: changes may have been missed, so everything must be read again. */
  reconnected: []
  /** The connection was lost: until `reconnected`, data that relies on notifications may be stale. */
  lost: []
}

export type Notifications = {
  on<T extends keyof Topics>(topic: T, listener: (...args: Topics[T]) => void): () => void
  /** Resolves at the next event about `subject`, at `lost`, or after `timeoutMs`, whichever is first. */
  nextEvent(accountId: string, subject: string, timeoutMs: number): { done: Promise<void>; cancel(): void }
  readonly connected: boolean
  close(): Promise<void>
}

export function notificationsReadiness(notifications: Notifications): () => string | null {
  return () => (notifications.connected ? null : 'The connection for database notifications is lost.')
}

// Channels whose payload, usually a name, is passed on unchanged.
type Channel = Exclude<keyof Topics, 'event' | 'reconnected' | 'lost'>
const channels: Record<string, Channel> = {
  berth_job: 'job',
  berth_log: 'log',
  berth_zone: 'zone',
  berth_certificate: 'certificate',
  berth_challenge: 'challenge',
  berth_limit: 'limit',
  berth_instance: 'instance',
  berth_node: 'node',
  berth_session: 'session',
  berth_dns_key: 'dnsKey',
}

const reconnectDelaysMs = [100, 250, 500, 1_000, 2_000]
const connectMs = 3_000
// A connection that was cut silently looks like one without traffic. So it notifies itself every second, and is replaced
// when two notifications are missing.
const heartbeatMs = 1_000
const maxMissed = 2
// How long an orderly shutdown of the connection may take.
const endMs = 1_000

/** With `away`, the first connection is made in the background, like a reconnect. Otherwise it exists on return. */
export async function listen(url: string, log: Logger, away = false): Promise<Notifications> {
  const emitter = new EventEmitter<Topics>()
  emitter.setMaxListeners(0)
  // Callers of `nextEvent` by account and subject: thousands may wait, but an event concerns few of them.
  const waiters = new Map<string, Set<() => void>>()
  let client: pg.Client | null = null
  let closed = false
  let retry: NodeJS.Timeout | undefined

  function dispatch({ channel, payload = '' }: pg.Notification): void {
    if (channel === 'berth_event') {
      const [type = '', accountId = '', subject = ''] = payload.split(' ')
      emitter.emit('event', { type, accountId, subject })
      for (const wake of waiters.get(`${accountId} ${subject}`) ?? []) wake()
    } else {
      const topic = channels[channel]
      if (topic) emitter.emit(topic, payload)
    }
  }

  async function connect(): Promise<void> {
    const connection = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: connectMs,
      query_timeout: connectMs,
    })
    const heartbeat = `berth_heartbeat_${randomLabel(12)}`
    let missed = 0
    connection.on('error', () => {})
    connection.on('notification', (notification) => {
      if (notification.channel === heartbeat) missed = 0
      else dispatch(notification)
    })
    try {
      await connection.connect()
      const listens = ['berth_event', ...Object.keys(channels), heartbeat].map((channel) => `LISTEN ${channel}`)
      // A heartbeat doesn't need to reach the disk.
      await connection.query(['SET synchronous_commit = off', ...listens].join('; '))
    } catch (error) {
      void end(connection)
      throw error
    }
    client = connection
    const beat = setInterval(() => {
      if (missed >= maxMissed) return lose()
      missed++
      connection.query(`NOTIFY ${heartbeat}`).catch(() => {})
    }, heartbeatMs)
    beat.unref()
    connection.on('end', () => {
      clearInterval(beat)
      if (client === connection) lose()
    })
  }

  function lose(): void {
    const lost = client
    client = null
    if (lost) void end(lost)
    if (closed) return
    log.warn('lost the notification connection to the database')
    emitter.emit('lost')
    for (const wakes of waiters.values()) for (const wake of wakes) wake()
    reconnect(0)
  }

  function reconnect(attempt: number): void {
    retry = setTimeout(
      async () => {
        try {
          await connect()
          if (closed) return void (client && end(client))
          log.info('the notification connection to the database is back')
          emitter.emit('reconnected')
        } catch {
          if (!closed) reconnect(attempt + 1)
        }
      },
      reconnectDelaysMs[Math.min(attempt, reconnectDelaysMs.length - 1)],
    )
    retry.unref()
  }

  if (away) reconnect(0)
  else await connect()
  const notifications: Notifications = {
    on(topic, listener) {
      emitter.on(topic, listener as never)
      return () => emitter.off(topic, listener as never)
    },
    nextEvent(accountId, subject, timeoutMs) {
      const key = `${accountId} ${subject}`
      const { promise: done, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(() => cancel(), timeoutMs)
      function cancel(): void {
        clearTimeout(timer)
        const others = waiters.get(key)
        if (others?.delete(cancel) && others.size === 0) waiters.delete(key)
        resolve()
      }
      const others = waiters.get(key) ?? new Set()
      waiters.set(key, others.add(cancel))
      return { done, cancel }
    },
    get connected() {
      return client !== null
    },
    async close() {
      closed = true
      clearTimeout(retry)
      if (client) await end(client)
    },
  }
  return notifications
}

/** Closes a connection, even if the other end is gone. */
async function end(client: pg.Client): Promise<void> {
  const { connection } = client as unknown as { connection: { stream: Socket } }
  const timer = setTimeout(() => connection.stream.destroy(), endMs)
  await client.end().catch(() => {})
  clearTimeout(timer)
}
