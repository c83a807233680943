// What happens in the account, as it happens: one stream for the whole page, resumed behind the last event.
import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { BerthError } from '../../../sdk/src/errors.ts'
import { follow } from '../../../sdk/src/streams.ts'
import type { Event } from '../../../sdk/src/types.ts'
import { berth } from './api.ts'
import { serverNow } from './session.ts'

export type { Event }
export type EventPattern = Event['type'] | `${string}.*` | '*'

/** `off`: the person may not read events. */
export const live = signal<'connecting' | 'live' | 'offline' | 'off'>('connecting')
/** How often events may have been missed: everything that is shown is read again then. */
export const restarts = signal(0)
export const offlineSince = signal<number | null>(null)

const handlers = new Set<(event: Event) => void>()
// A stream whose token ends is opened again at once; nobody needs to hear of that.
const patienceMs = 1_500
const retryMs = 5_000
// An account has few streams: a page that nobody sees gives its own back, and catches up when it is looked at.
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
    const take = (event: Event) => {
      if (patterns.some((pattern) => matches(pattern, event.type))) latest.current(event)
    }
    handlers.add(take)
    return () => void handlers.delete(take)
  }, [patterns.join()])
}

let patience: ReturnType<typeof setTimeout> | undefined
function lost(): void {
  patience ??= setTimeout(() => {
    live.value = 'offline'
    offlineSince.value ??= serverNow()
  }, patienceMs)
}
function found(): void {
  clearTimeout(patience)
  patience = undefined
  // Whatever could not be read meanwhile is read now.
  if (live.peek() === 'offline') restarts.value++
  live.value = 'live'
  offlineSince.value = null
}

/** Aborted when the page has been hidden for a while, or has no network. */
function whileSeen(): AbortSignal {
  const seen = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = () => {
    clearTimeout(timer)
    if (document.hidden) timer = setTimeout(() => seen.abort(), hiddenMs)
  }
  document.addEventListener('visibilitychange', look, { signal: seen.signal })
  addEventListener('offline', () => seen.abort(), { signal: seen.signal })
  look()
  return seen.signal
}

function untilSeen(): Promise<void> {
  if (!document.hidden) return Promise.resolve()
  return new Promise((resolve) => document.addEventListener('visibilitychange', () => resolve(), { once: true }))
}

function untilOnline(): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(go, retryMs)
    function go() {
      clearTimeout(timer)
      removeEventListener('online', go)
      resolve()
    }
    addEventListener('online', go)
  })
}

/** Runs as long as the page does. */
export async function startLive(): Promise<void> {
  let lastEventId: string | undefined
  for (;;) {
    await untilSeen()
    const signal = whileSeen()
    try {
      lastEventId ??= (await berth.get('/events', { params: { query: { limit: 1 } } })).events[0]?.id
      const open = async (init: object) => {
        lost()
        const { data, error, response } = await berth.raw.GET('/events', { parseAs: 'stream', ...init })
        if (!response.ok) throw new BerthError(response, error)
        found()
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
        clearTimeout(patience)
        live.value = 'off'
        return
      }
      // The session is gone, and the page goes to the sign-in; it is loaded anew there.
      if (status === 401) return
      // An event that is kept no longer cannot be resumed behind: begin anew.
      if (status !== undefined && status < 500 && status !== 403 && status !== 429) {
        lastEventId = undefined
        restarts.value++
      }
      lost()
      await untilOnline()
    }
  }
}
