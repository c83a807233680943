// What happens in the account, as it happens: one stream for the whole page, resumed behind the last event.
import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { BerthError } from '../../../sdk/src/errors.ts'
import { follow } from '../../../sdk/src/streams.ts'
import type { Event } from '../../../sdk/src/types.ts'
import { berth } from './api.ts'
import { access, serverNow } from './session.ts'

export type { Event }
export type EventPattern = Event['type'] | `${string}.*` | '*'

/** `off`: the person may not read events. */
export const live = signal<'connecting' | 'live' | 'offline' | 'off'>('connecting')
export const offlineSince = signal<number | null>(null)

const handlers = new Set<(event: Event) => void>()
// A stream whose token ends is opened again at once; nobody needs to hear of that.
const patienceMs = 1_500
const retryMs = 5_000

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
  live.value = 'live'
  offlineSince.value = null
}

/** Runs as long as the page does. */
export async function startLive(): Promise<void> {
  let lastEventId: string | undefined
  addEventListener('offline', lost)
  for (;;) {
    try {
      lastEventId ??= (await berth.get('/events', { params: { query: { limit: 1 } } })).events[0]?.id
      const open = async (init: object) => {
        lost()
        const { data, error, response } = await berth.raw.GET('/events', { parseAs: 'stream', ...init })
        if (!data) throw Object.assign(new Error(String(error)), { status: response.status })
        found()
        return data as ReadableStream
      }
      for await (const { data } of follow(open, { lastEventId })) {
        const event = JSON.parse(data) as Event
        lastEventId = event.id
        for (const handle of handlers) handle(event)
      }
    } catch (error) {
      const { status } = error as BerthError
      if (status === 403) {
        clearTimeout(patience)
        live.value = 'off'
        return
      }
      if (status === 401 || !access.peek()) return
      // An event that is kept no longer cannot be resumed behind: begin anew.
      if (status !== undefined && status < 500) lastEventId = undefined
      lost()
      await new Promise((resolve) => setTimeout(resolve, retryMs))
    }
  }
}
