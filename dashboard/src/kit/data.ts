// What a screen shows: read by a call, kept while one moves about, and read again when an event says that it changed.
import { batch, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { Call, Query } from './calls.ts'
import { type EventPattern, restarts, useEvents } from './live.ts'

export type QueryOptions = {
  /** Read again after events of these types. */
  on?: readonly EventPattern[]
  /** Of those events, only these. */
  when?: (event: { type: string; subject: string; data: Record<string, unknown> }) => boolean
}

// What was read before is shown at once, and then again as it is now.
const remembered = new Map<string, unknown>()
const maxRemembered = 100
// Events come in bursts.
const burstMs = 80

function remember(key: string, data: unknown): void {
  remembered.delete(key)
  remembered.set(key, data)
  if (remembered.size > maxRemembered) remembered.delete(remembered.keys().next().value!)
}

function createQuery<T>(call: Call<T> | null, read: (call: Call<T>, signal: AbortSignal) => Promise<T>) {
  const data = signal(call ? (remembered.get(call.key) as T | undefined) : undefined)
  const error = signal<unknown>(null)
  const loading = signal(call !== null)
  const gone = new AbortController()
  let running = false
  let again = false
  let timer: ReturnType<typeof setTimeout> | undefined

  async function load(): Promise<void> {
    if (!call || gone.signal.aborted) return
    if (running) {
      again = true
      return
    }
    running = true
    loading.value = true
    do {
      again = false
      try {
        const answer = await read(call, gone.signal)
        if (gone.signal.aborted) return
        remember(call.key, answer)
        batch(() => {
          data.value = answer
          error.value = null
        })
      } catch (failure) {
        if (gone.signal.aborted) return
        error.value = failure
      }
    } while (again)
    running = false
    loading.value = false
  }

  return {
    load,
    soon() {
      clearTimeout(timer)
      timer = setTimeout(load, burstMs)
    },
    stop() {
      clearTimeout(timer)
      gone.abort(new DOMException('The screen was left.', 'AbortError'))
    },
    put(value: T) {
      data.value = value
      if (call) remember(call.key, value)
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

function useCreated<T>(
  call: Call<T> | null,
  { on = [], when }: QueryOptions,
  read: (call: Call<T>, signal: AbortSignal) => Promise<T> = (it, signal) => it.send(signal),
) {
  const made = useMemo(() => createQuery(call, read), [call?.key])
  const round = restarts.value
  useEffect(() => void made.load(), [made, round])
  useEffect(() => made.stop, [made])
  useEvents(on, (event) => {
    if (!when || when(event as never)) made.soon()
  })
  return made
}

/** Null reads nothing: for what depends on something that is not there yet. */
export function useQuery<T>(call: Call<T> | null, options: QueryOptions = {}): Query<T> {
  return useCreated(call, options).query
}

type Page = { nextCursor: string | null }
type Item<T> = { [K in keyof T]: T[K] extends readonly (infer I)[] ? I : never }[keyof T]

export type List<T> = Query<T> & {
  items: Item<T>[] | undefined
  hasMore: boolean
  /** Reads the next page; what was read stays. */
  more(): Promise<void>
}

const itemsOf = (page: object) => Object.entries(page).find(([, value]) => Array.isArray(value)) as [string, unknown[]]
const hasMore = (page: Page) => page.nextCursor !== null

/** A list in pages. After an event all pages that are shown are read again. */
export function useList<T extends Page>(call: Call<T> | null, options: QueryOptions = {}): List<T> {
  const made = useCreated(call, options, async (first, signal) => {
    const shown = made.query.data ? itemsOf(made.query.data)[1].length : 0
    let page = await first.send(signal)
    while (itemsOf(page)[1].length < shown && hasMore(page))
      page = joined(page, await first.from(page.nextCursor!).send(signal))
    return page
  })
  const { data } = made.query
  return Object.assign(Object.create(made.query), {
    items: data && itemsOf(data)[1],
    hasMore: data !== undefined && hasMore(data),
    async more() {
      const page = made.query.data
      if (page && call && hasMore(page)) made.put(joined(page, await call.from(page.nextCursor!).send()))
    },
  })
}

function joined<T extends Page>(page: T, next: T): T {
  const [name, items] = itemsOf(page)
  return { ...next, [name]: [...items, ...itemsOf(next)[1]] }
}
