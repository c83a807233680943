// Loads the data of screens: cached between screens, and reloaded after events that change it.
import { batch, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { Call, Query } from './calls.ts'
import { type EventPattern, restarts, useEvents } from './live.ts'

export type QueryOptions = {
  /** Reload after events of these types. */
  on?: readonly EventPattern[]
  /** Filters those events. */
  when?: (event: { type: string; subject: string; data: Record<string, unknown> }) => boolean
}

// Cached data is shown at once, then replaced by the current data.
const cache = new Map<string, unknown>()
const maxCached = 100
// Events come in bursts.
const burstMs = 80

function store(key: string, data: unknown): void {
  cache.delete(key)
  cache.set(key, data)
  if (cache.size > maxCached) cache.delete(cache.keys().next().value!)
}

function createQuery<T>(call: Call<T> | null, read: (call: Call<T>, signal: AbortSignal) => Promise<T>) {
  const data = signal(call ? (cache.get(call.key) as T | undefined) : undefined)
  const error = signal<unknown>(null)
  const loading = signal(call !== null)
  const controller = new AbortController()
  let running = false
  let reload = false
  let timer: ReturnType<typeof setTimeout> | undefined

  async function load(): Promise<void> {
    if (!call || controller.signal.aborted) return
    if (running) {
      reload = true
      return
    }
    running = true
    loading.value = true
    do {
      reload = false
      try {
        const result = await read(call, controller.signal)
        if (controller.signal.aborted) return
        store(call.key, result)
        batch(() => {
          data.value = result
          error.value = null
        })
      } catch (failure) {
        if (controller.signal.aborted) return
        error.value = failure
      }
    } while (reload)
    running = false
    loading.value = false
  }

  return {
    load,
    loadSoon() {
      clearTimeout(timer)
      timer = setTimeout(load, burstMs)
    },
    stop() {
      clearTimeout(timer)
      controller.abort(new DOMException('The screen was left.', 'AbortError'))
    },
    put(value: T) {
      data.value = value
      if (call) store(call.key, value)
    },
    query: {
      get data() {
        return data.value
      },
      get error() {
        return error.value
      },
      get loading() {
        return loading.value
      },
      call,
      refetch: () => void load(),
      set(value: T) {
        const before = data.peek()
        data.value = value
        return () => {
          data.value = before
        }
      },
    } satisfies Query<T>,
  }
}

function useCall<T>(
  call: Call<T> | null,
  { on = [], when }: QueryOptions,
  read: (call: Call<T>, signal: AbortSignal) => Promise<T> = (it, signal) => it.send(signal),
) {
  const entry = useMemo(() => createQuery(call, read), [call?.key])
  const round = restarts.value
  useEffect(() => void entry.load(), [entry, round])
  useEffect(() => entry.stop, [entry])
  useEvents(on, (event) => {
    if (!when || when(event as never)) entry.loadSoon()
  })
  return entry
}

/** A null call loads nothing, for data that depends on other data. */
export function useQuery<T>(call: Call<T> | null, options: QueryOptions = {}): Query<T> {
  return useCall(call, options).query
}

type Page = { nextCursor: string | null }
type Item<T> = { [K in keyof T]: T[K] extends readonly (infer I)[] ? I : never }[keyof T]

export type List<T> = Query<T> & {
  items: Item<T>[] | undefined
  hasMore: boolean
  /** Appends the next page. */
  more(): Promise<void>
}

const itemsOf = (page: object) => Object.entries(page).find(([, value]) => Array.isArray(value)) as [string, unknown[]]
const hasMore = (page: Page) => page.nextCursor !== null

/** A list in pages. After an event, all loaded pages are reloaded. */
export function useList<T extends Page>(call: Call<T> | null, options: QueryOptions = {}): List<T> {
  const entry = useCall(call, options, async (first, signal) => {
    const shown = entry.query.data ? itemsOf(entry.query.data)[1].length : 0
    let page = await first.send(signal)
    while (itemsOf(page)[1].length < shown && hasMore(page))
      page = join(page, await first.from(page.nextCursor!).send(signal))
    return page
  })
  const { data } = entry.query
  return Object.assign(Object.create(entry.query), {
    items: data && itemsOf(data)[1],
    hasMore: data !== undefined && hasMore(data),
    async more() {
      const page = entry.query.data
      if (page && call && hasMore(page)) entry.put(join(page, await call.from(page.nextCursor!).send()))
    },
  })
}

function join<T extends Page>(page: T, next: T): T {
  const [name, items] = itemsOf(page)
  return { ...next, [name]: [...items, ...itemsOf(next)[1]] }
}
