// Live events of the account: one stream for the whole page, resumed after the last event.
import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { BerthError } from '../../../sdk/src/errors.ts'
import { follow } from '../../../sdk/src/streams.ts'
import type { Event } from '../../../sdk/src/types.ts'
import { berth } from './api.ts'
import { serverNow } from './session.ts'

export type { Event }
export type EventPattern = Event['type'] | `${string}.*` | '*'

/** `off`: the person can't read events. */
export const live = signal<'connecting' | 'live' | 'offline' | 'off'>('connecting')
/** Incremented when events may have been missed; all visible data is then reloaded. */
export const restarts = signal(0)
export const offlineSince = signal<number | null>(null)

const handlers = new Set<(event: Event) => void>()
// A stream whose token expires is reopened at once; that isn't shown as offline.
const offlineDelayMs = 1_500
const retryMs = 5_000
// An account has few streams: a hidden page closes its own, and catches up when it is visible again.
const hiddenMs = 120_000

export function matches(pattern: EventPattern, type: string): boolean {
  return pattern === '*' || pattern === type || (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1)))
}

/** Calls the handler for each event of these types while the component is shown. */
export function useEvents(patterns: readonly EventPattern[], handler: (event: Event) => void): void {
  const latest = useRef(handler)
  latest.current = handler
  useEffect(() => {
    if (patterns.length === 0) return
    const handle = (event: Event) => {
      if (patterns.some((pattern) => matches(pattern, event.type))) latest.current(event)
    }
    handlers.add(handle)
    return () => void handlers.delete(handle)
  }, [patterns.join()])
}

let offlineTimer: ReturnType<typeof setTimeout> | undefined
function markOffline(): void {
  offlineTimer ??= setTimeout(() => {
    live.value = 'offline'
    offlineSince.value ??= serverNow()
  }, offlineDelayMs)
}
function markLive(): void {
  clearTimeout(offlineTimer)
  offlineTimer = undefined
  // Reload what couldn't be loaded meanwhile.
  if (live.peek() === 'offline') restarts.value++
  live.value = 'live'
  offlineSince.value = null
}

/** Aborted when the page has been hidden for a while, or has no network. */
function whileVisible(): AbortSignal {
  const controller = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const checkVisibility = () => {
    clearTimeout(timer)
    if (document.hidden) timer = setTimeout(() => controller.abort(), hiddenMs)
  }
  document.addEventListener('visibilitychange', checkVisibility, { signal: controller.signal })
  addEventListener('offline', () => controller.abort(), { signal: controller.signal })
  checkVisibility()
  return controller.signal
}

function untilVisible(): Promise<void> {
  if (!document.hidden) return Promise.resolve()
  return new Promise((resolve) => document.addEventListener('visibilitychange', () => resolve(), { once: true }))
}

function untilOnline(): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(finish, retryMs)
    function finish() {
      clearTimeout(timer)
      removeEventListener('online', finish)
      resolve()
    }
    addEventListener('online', finish)
  })
}

/** Runs as long as the page does. */
export async function startLive(): Promise<void> {
  let lastEventId: string | undefined
  for (;;) {
    await untilVisible()
    const signal = whileVisible()
    try {
      lastEventId ??= (await berth.get('/events', { params: { query: { limit: 1 } } })).events[0]?.id
      const open = async (init: object) => {
        markOffline()
        const { data, error, response } = await berth.raw.GET('/events', { parseAs: 'stream', ...init })
        if (!response.ok) throw new BerthError(response, error)
        markLive()
        return data as unknown as ReadableStream
      }
      for await (const { data } of follow(open, { lastEventId, signal })) {
        const event = JSON.parse(data) as Event
        lastEventId = event.id
        for (const handle of handlers) handle(event)
      }
    } catch (error) {
      if (signal.aborted && document.hidden) continue
      const { status, code } = error as Partial<BerthError>
      if (code === 'insufficient_scope') {
        clearTimeout(offlineTimer)
        live.value = 'off'
        return
      }
      // The session has ended; the sign-in reloads the page.
      if (status === 401) return
      // The last event is no longer stored, so the stream can't resume after it: start over.
      if (status !== undefined && status < 500 && status !== 403 && status !== 429) {
        lastEventId = undefined
        restarts.value++
      }
      markOffline()
      await untilOnline()
    }
  }
}
