// The delivery of webhooks: holds webhooks that have something to send, claims what is due, sends, and records.
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from '../../config.ts'
import type { Database } from '../../db.ts'
import { randomLabel } from '../../ids.ts'
import type { Notifications } from '../../notifications.ts'
import type { Vault } from '../../secrets.ts'
import {
  type Claimed,
  claimDeliveries,
  releaseLanes,
  renewLanes,
  takeDue,
  takePending,
} from '../../services/delivery-lanes.ts'
import { countWaiting, type Outcome, pruneDeliveries, succeeded } from '../../services/delivery-results.ts'
import { isPublicAddress } from '../../services/webhook-targets.ts'
import { adopt, type Lane, type Lanes, noteClaim, shareOut } from './lanes.ts'
import { createSigner, writeMessage } from './message.ts'
import { createDeliveryMetrics } from './metrics.ts'
import { createRecorder } from './recorder.ts'
import { createResolve, resolveBySystem } from './resolve.ts'
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

export type Deliveries = { stop(): Promise<void> }

// A worker that dies is noticed when its lease ends.
const defaultLeaseMs = 10_000
// Finds retries whose time has come, and the webhooks of dead workers; new events are told by notification.
const defaultPollMs = 1_000
// Finds what no notification told about.
const searchMs = 30_000
const pruneMs = 10 * 60_000
// What comes within this time is claimed together: a statement for eighty costs little more than one for one.
const gatherMs = 80
// The same after a round in vain: most events are of accounts without a webhook.
const vainMs = 100
const unsettledMs = 15
const failedRoundMs = 1_000
// A webhook that had nothing to send for this long may go to another worker.
const idleMs = 5_000
const stopGraceMs = 3_000

export function startDeliveries(deps: DeliveryDeps, options: DeliveryOptions = {}): Deliveries {
  const { config, db, notifications, log } = deps
  const { leaseMs = defaultLeaseMs, pollMs = defaultPollMs } = options
  const worker = `${hostname()}-${process.pid}-${randomLabel(6)}`
  const sender = createSender({
    mayReach: config.webhookAllowPrivate ? () => true : isPublicAddress,
    resolve: config.webhookAllowPrivate ? resolveBySystem : createResolve(config.dnsResolvers),
    ca: options.ca,
    timeoutMs: options.timeoutMs,
  })
  const sign = createSigner(deps.vault)
  const lanes: Lanes = new Map()
  const accounts = new Set<string>()
  const attempts = new Set<Promise<void>>()
  const stopping = new AbortController()
  const metrics = createDeliveryMetrics(deps.registry, {
    inFlight: () => attempts.size,
    waiting: () => countWaiting(db),
  })
  const recorder = createRecorder(db, log, (webhookIds) => {
    for (const id of webhookIds) {
      const lane = lanes.get(id)
      if (lane) Object.assign(lane, { failed: false, wanted: true })
    }
    wake()
  })
  const due = { poll: 0, search: 0, renewal: 0, prune: Date.now() + pruneMs }
  let woken = Promise.withResolvers<void>()
  /** A webhook had to wait because too much is under way already. */
  let crowded = false

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
      // Made before anything is looked at: what comes meanwhile wakes the next round.
      woken = Promise.withResolvers<void>()
      let pauseMs = failedRoundMs
      try {
        const { claimed, unsettled } = await round()
        // What is alone goes at once; the pause comes behind it, and gathers what follows.
        pauseMs = unsettled ? unsettledMs : claimed > 0 ? gatherMs : vainMs
        if (unsettled) wake()
      } catch (err) {
        log.warn({ err }, 'webhooks could not be looked at')
        // Whatever was told before is looked for.
        due.search = 0
      }
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => {})
      await nextWake()
    }
  }

  async function nextWake(): Promise<void> {
    const timer = setTimeout(wake, Math.max(0, Math.min(...Object.values(due)) - Date.now()))
    await woken.promise
    clearTimeout(timer)
  }

  /** Tells how much was claimed, and whether something is there that cannot be claimed just yet. */
  async function round(): Promise<{ claimed: number; unsettled: boolean }> {
    const now = Date.now()
    if (now >= due.renewal) await renew(now)
    const told = [...accounts]
    for (const lane of lanes.values()) if (now >= due.poll || accounts.has(lane.accountId)) lane.wanted = true
    accounts.clear()
    if (now >= due.search) {
      adopt(lanes, await takePending(db, worker, leaseMs, 'all'))
      due.search = now + searchMs
    } else if (told.length > 0) {
      adopt(lanes, await takePending(db, worker, leaseMs, told))
    }
    if (now >= due.poll) {
      adopt(lanes, await takeDue(db, worker, leaseMs))
      due.poll = now + pollMs
    }
    const outcome = await claim()
    await releaseIdle(Date.now())
    if (now >= due.prune) due.prune = (await pruneDeliveries(db)) ? now : now + pruneMs
    return outcome
  }

  async function renew(now: number): Promise<void> {
    due.renewal = now + leaseMs / 3
    if (lanes.size === 0) return
    const kept = new Set(await renewLanes(db, worker, leaseMs, [...lanes.keys()]))
    for (const id of lanes.keys()) if (!kept.has(id)) lanes.delete(id)
  }

  async function claim(): Promise<{ claimed: number; unsettled: boolean }> {
    const plan = shareOut(lanes, attempts.size)
    crowded = plan.crowded
    if (plan.shares.length === 0) return { claimed: 0, unsettled: false }
    const { claimed, unsettled } = await claimDeliveries(db, worker, plan.shares)
    noteClaim(lanes, plan.shares, claimed)
    for (const delivery of claimed) {
      const attempt = attend(delivery, lanes.get(delivery.webhookId)!).finally(() => attempts.delete(attempt))
      attempts.add(attempt)
    }
    for (const webhookId of unsettled) lanes.get(webhookId)!.wanted = true
    return { claimed: claimed.length, unsettled: unsettled.length > 0 }
  }

  async function attend(delivery: Claimed, lane: Lane): Promise<void> {
    const { id: deliveryId, webhookId, attempt, failures } = delivery
    lane.busy++
    const outcome = await send(delivery)
    // One that was cut off stays as it is: whoever holds the webhook next finds it begun, and begins again.
    if (outcome) {
      metrics.attempted(outcome)
      if (!succeeded(outcome)) lane.failed = true
      recorder.add({ ...outcome, deliveryId, webhookId, attempt }, failures)
    }
    lane.busy--
    lane.usedMs = Date.now()
    if (lane.more) lane.wanted = true
    if (lane.more || crowded) wake()
  }

  async function send(delivery: Claimed): Promise<Outcome | null> {
    const now = new Date()
    const failed = (error: string) => ({ startedAt: now, durationMs: 0, status: null, body: null, error })
    if (delivery.attempt === 1) metrics.firstAttempt((now.getTime() - delivery.createdAt.getTime()) / 1000)
    try {
      const message = writeMessage(delivery, sign, now)
      return message ? await sender.send(delivery.url, message) : failed('the event is not there any more')
    } catch (err) {
      log.error({ err, deliveryId: delivery.id }, 'a webhook could not be called')
      return failed('the request could not be made')
    }
  }

  async function releaseIdle(now: number): Promise<void> {
    const isIdle = (lane: Lane) => lane.busy === 0 && !lane.wanted && lane.usedMs < now - idleMs
    // What was sent is on record before another worker may look.
    const idle = [...lanes.values()].filter((lane) => isIdle(lane) && !recorder.isWaiting(lane.webhookId))
    if (idle.length === 0) return
    const ids = idle.map((lane) => lane.webhookId)
    await releaseLanes(db, worker, ids)
    for (const id of ids) lanes.delete(id)
  }

  const running = run()
  return {
    async stop() {
      for (const stop of off) stop()
      stopping.abort()
      wake()
      await running
      const grace = setTimeout(() => sender.close(), stopGraceMs)
      await Promise.all(attempts)
      clearTimeout(grace)
      await recorder.close(stopGraceMs)
      if (lanes.size > 0) {
        const released = releaseLanes(db, worker, [...lanes.keys()])
        await released.catch((err) => log.warn({ err }, 'webhooks go to another worker when the lease ends'))
      }
      sender.close()
    },
  }
}
