// Delivers events to webhooks: leases webhooks with pending events, claims due deliveries, sends and records them.
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from '../../config.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Notifications } from '../../platform/database/notifications.ts'
import { createReach } from '../../platform/http/checked-lookup.ts'
import { randomLabel } from '../../platform/ids.ts'
import type { Pausable } from '../../platform/observe/draining.ts'
import { inSpan, type SpanOptions } from '../../platform/observe/tracing.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import {
  type Claimed,
  claimDeliveries,
  countWaiting,
  type Outcome,
  releaseLeases,
  renewLeases,
  succeeded,
  takeDue,
  takePending,
} from '../../services/webhooks/index.ts'
import {
  type ActiveWebhook,
  type ActiveWebhooks,
  addWebhooks,
  adjustWindow,
  allocate,
  recordClaim,
} from './active-webhooks.ts'
import { createSigner, writeMessage } from './message.ts'
import { createDeliveryMetrics } from './metrics.ts'
import { createRecorder } from './recorder.ts'
import { createSender } from './sender.ts'

export type DeliveryDeps = {
  config: Pick<Config, 'webhookAllowPrivate' | 'dnsResolvers'>
  db: Database
  notifications: Notifications
  vault: Vault
  log: Logger
  registry?: Registry
}

export type DeliveryOptions = { leaseMs?: number; pollMs?: number; timeoutMs?: number; ca?: string }

/** Whether a round claimed deliveries, filled a webhook's window, or met events that can't be claimed yet. */
type Round = { claimed: boolean; full: boolean; unsettled: boolean }

export type Deliveries = Pausable & { stop(): Promise<void> }

// A dead worker is noticed at the first poll after its lease has expired: within 7 s.
const defaultLeaseMs = 6_000
// Finds due retries and the webhooks of dead workers. New events arrive by notification.
const defaultPollMs = 1_000
// Finds events whose notification was lost.
const searchIntervalMs = 30_000
// Events within this time are claimed together, because claiming eighty costs little more than claiming one.
const claimedPauseMs = 80
// Shorter while a receiver keeps up with a full window, because responses make room quickly.
const fullPauseMs = 10
// Longer after a round without a claim, because most events belong to accounts without a webhook.
const emptyPauseMs = 100
const unsettledPauseMs = 15
const failedPauseMs = 1_000
// A webhook that has been idle for this long may go to another worker.
const idleMs = 5_000
const stopTimeoutMs = 3_000

export function startDeliveries(deps: DeliveryDeps, options: DeliveryOptions = {}): Deliveries {
  const { config, db, notifications, log } = deps
  const { leaseMs = defaultLeaseMs, pollMs = defaultPollMs } = options
  const worker = `${hostname()}-${process.pid}-${randomLabel(6)}`
  const lease = { worker, leaseMs }
  const sender = createSender({
    ...createReach(config),
    ca: options.ca,
    timeoutMs: options.timeoutMs,
  })
  const sign = createSigner(deps.vault)
  const webhooks: ActiveWebhooks = new Map()
  const accounts = new Set<string>()
  const attempts = new Set<Promise<void>>()
  const stopping = new AbortController()
  const metrics = createDeliveryMetrics(deps.registry, {
    inFlight: () => attempts.size,
    waiting: () => countWaiting(db),
  })
  const recorder = createRecorder(db, log, (webhookIds) => {
    for (const id of webhookIds) {
      const webhook = webhooks.get(id)
      if (webhook) Object.assign(webhook, { failed: false, hasWork: true })
    }
    wake()
  })
  const due = { poll: 0, search: 0, renewal: 0 }
  let woken = Promise.withResolvers<void>()
  /** Whether a webhook has to wait because too many requests are in flight. */
  let crowded = false
  let paused = false

  const wake = () => woken.resolve()

  const off = [
    notifications.on('event', ({ accountId }) => {
      accounts.add(accountId)
      wake()
    }),
    notifications.on('reconnected', () => {
      due.search = 0
      wake()
    }),
  ]

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      // Created before the round, so that events during it wake the next one.
      woken = Promise.withResolvers<void>()
      let pauseMs = failedPauseMs
      try {
        const { claimed, full, unsettled } = await round()
        // A single event is sent immediately. The pause afterwards gathers the following ones.
        pauseMs = full ? fullPauseMs : unsettled ? unsettledPauseMs : claimed ? claimedPauseMs : emptyPauseMs
        if (unsettled) wake()
      } catch (err) {
        log.warn({ err }, 'webhooks could not be checked')
        // Search again, because the notifications are lost.
        due.search = 0
      }
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => {})
      await nextWake()
    }
  }

  async function nextWake(): Promise<void> {
    const timer = setTimeout(wake, Math.max(0, Math.min(...Object.values(due)) - performance.now()))
    await woken.promise
    clearTimeout(timer)
  }

  async function round(): Promise<Round> {
    const now = performance.now()
    if (now >= due.renewal) await renew(now)
    if (paused) return releaseAll(now)
    const notified = [...accounts]
    for (const webhook of webhooks.values()) {
      if (now >= due.poll || accounts.has(webhook.accountId)) webhook.hasWork = true
    }
    accounts.clear()
    if (now >= due.search) {
      addWebhooks(webhooks, await takePending(db, lease, 'all'))
      due.search = now + searchIntervalMs
    } else if (notified.length > 0) {
      addWebhooks(webhooks, await takePending(db, lease, notified))
    }
    if (now >= due.poll) {
      addWebhooks(webhooks, await takeDue(db, lease))
      due.poll = now + pollMs
    }
    const outcome = await claim()
    const idleSince = performance.now() - idleMs
    await release(({ busy, hasWork, usedMs }) => busy === 0 && !hasWork && usedMs < idleSince)
    return outcome
  }

  /** Releases webhooks to other workers once their attempts in progress are recorded. */
  async function releaseAll(now: number): Promise<Round> {
    Object.assign(due, { poll: now + pollMs, search: now + searchIntervalMs })
    await release(({ busy }) => busy === 0)
    return { claimed: false, full: false, unsettled: false }
  }

  async function renew(now: number): Promise<void> {
    due.renewal = now + leaseMs / 3
    if (webhooks.size === 0) return
    const kept = new Set(await renewLeases(db, lease, [...webhooks.keys()]))
    for (const id of webhooks.keys()) if (!kept.has(id)) webhooks.delete(id)
  }

  async function claim(): Promise<Round> {
    const plan = allocate(webhooks, attempts.size)
    crowded = plan.crowded
    if (plan.shares.length === 0) return { claimed: false, full: false, unsettled: false }
    const { claimed, unsettled } = await claimDeliveries(db, worker, plan.shares)
    const full = recordClaim(webhooks, plan.shares, claimed)
    for (const delivery of claimed) {
      const attempt = runAttempt(delivery, webhooks.get(delivery.webhookId)!).finally(() => attempts.delete(attempt))
      attempts.add(attempt)
    }
    for (const webhookId of unsettled) webhooks.get(webhookId)!.hasWork = true
    return { claimed: claimed.length > 0, full, unsettled: unsettled.length > 0 }
  }

  async function runAttempt(delivery: Claimed, webhook: ActiveWebhook): Promise<void> {
    const { id: deliveryId, webhookId, attempt, failures } = delivery
    webhook.busy++
    const outcome = await inSpan('delivery', { ...spanOf(delivery), parent: delivery.trace }, async (note) => {
      const sent = await send(delivery)
      if (sent?.status) note({ 'http.response.status_code': sent.status })
      if (sent && !succeeded(sent)) note({ 'error.type': sent.status === null ? 'unanswered' : 'refused' })
      return sent
    })
    // An aborted attempt stays open: the next holder of the webhook finds and repeats it.
    if (outcome) {
      metrics.attempted(outcome)
      adjustWindow(webhook, succeeded(outcome), outcome.durationMs)
      recorder.add({ ...outcome, deliveryId, webhookId, attempt }, failures)
    }
    webhook.busy--
    webhook.usedMs = performance.now()
    if (webhook.hasMore) webhook.hasWork = true
    if (webhook.hasMore || crowded) wake()
  }

  async function send(delivery: Claimed): Promise<Outcome | null> {
    const now = new Date()
    const failed = (error: string) => ({ startedAt: now, durationMs: 0, status: null, body: null, error })
    if (delivery.attempt === 1) metrics.firstAttempt((now.getTime() - delivery.createdAt.getTime()) / 1000)
    try {
      const message = writeMessage(delivery, sign, now)
      return message ? await sender.send(delivery.url, message) : failed('the event no longer exists')
    } catch (err) {
      log.error({ err, deliveryId: delivery.id }, 'a webhook could not be called')
      return failed('the request could not be sent')
    }
  }

  async function release(isFree: (webhook: ActiveWebhook) => boolean): Promise<void> {
    // Outcomes must be recorded before another worker may lease the webhook.
    const free = [...webhooks.values()].filter((webhook) => isFree(webhook) && !recorder.isWaiting(webhook.webhookId))
    if (free.length === 0) return
    const ids = free.map(({ webhookId }) => webhookId)
    await releaseLeases(db, worker, ids)
    for (const id of ids) webhooks.delete(id)
  }

  const running = run()
  return {
    pause(now) {
      paused = now
      if (!paused) due.search = 0
      wake()
    },
    async stop() {
      for (const stop of off) stop()
      stopping.abort()
      wake()
      await running
      const grace = setTimeout(() => sender.close(), stopTimeoutMs)
      await Promise.all(attempts)
      clearTimeout(grace)
      await recorder.close(stopTimeoutMs)
      if (webhooks.size > 0) {
        const released = releaseLeases(db, worker, [...webhooks.keys()])
        await released.catch((err) =>
          log.warn({ err }, 'webhooks could not be released; another worker gets them when the lease expires'),
        )
      }
      sender.close()
    },
  }
}

/** Leaves out the URL, whose path and query may contain the receiver's token. */
function spanOf({ id, webhookId, attempt, eventId }: Claimed): SpanOptions {
  const attributes = {
    'berth.delivery.id': id,
    'berth.webhook.id': webhookId,
    'berth.event.id': eventId,
    'berth.delivery.attempt': attempt,
  }
  return { kind: 'CLIENT', attributes }
}
