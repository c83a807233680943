// The log of events against its readers: a stream that resumes, a webhook, and what the acknowledged writes must have left.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { timeOf } from '../../src/platform/ids.ts'
import type { Client } from './client.ts'
import type { Expected } from './ledger.ts'

export type Event = { id: string; type: string; subject: string }
export type Compared = { lost: string[]; repeated: string[] }

export type Following = { origin: string; token: string; from: string; signal: AbortSignal }

/** Reads the stream of events into `seen` until the signal; comes back with Last-Event-ID whenever it breaks. */
export async function followEvents({ origin, token, from, signal }: Following, seen: string[]): Promise<void> {
  let last = from
  while (!signal.aborted) {
    try {
      const headers = { accept: 'text/event-stream', authorization: `Bearer ${token}`, 'last-event-id': last }
      const response = await fetch(`${origin}/api/events`, { headers, signal })
      if (!response.ok) throw new Error(`the stream answered ${response.status}`)
      let held = ''
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
        const blocks = (held + chunk).split('\n\n')
        held = blocks.pop()!
        for (const block of blocks) {
          const id = /^id: ?(.+)$/m.exec(block)?.[1]
          if (!id || !/^data:/m.test(block)) continue
          seen.push(id)
          last = id
        }
      }
    } catch {
      // Whoever served it is gone; the next one goes on behind the last event.
    }
    await sleep(100, undefined, { signal }).catch(() => {})
  }
}

export type Receiver = { url: string; received: string[]; close(): Promise<void> }

/** Takes webhooks at any path; only what comes to `/all` counts. */
export async function startReceiver(): Promise<Receiver> {
  const received: string[] = []
  const server = createServer(async (request, response) => {
    const body = await request.toArray().catch(() => null)
    if (body && request.url === '/all') received.push((JSON.parse(Buffer.concat(body).toString()) as Event).id)
    response.writeHead(204).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    received,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

/** The log behind an event, the oldest first. */
export async function readLog(client: Client, from: string): Promise<Event[]> {
  const events = await client.list<Event>('/events?order=asc', 'events')
  return events.slice(events.findIndex(({ id }) => id === from) + 1)
}

export function compareIds(log: Event[], seen: string[], reader: string): Compared {
  const known = new Set<string>()
  const repeated: string[] = []
  for (const id of seen) {
    if (known.has(id)) repeated.push(`${reader}: ${id}`)
    known.add(id)
  }
  const missing = log.filter(({ id }) => !known.has(id))
  return { lost: missing.map(({ id, type, subject }) => `${reader}: ${type} ${subject} (${id})`), repeated }
}

/** Events of one subject that a reader got in another order than that of the log. */
export function disorderOf(log: Event[], seen: string[], reader: string): string[] {
  const places = new Map(seen.map((id, at) => [id, at]))
  const last = new Map<string, Event & { place: number }>()
  const found: string[] = []
  for (const event of log) {
    const place = places.get(event.id)
    if (place === undefined) continue
    const before = last.get(event.subject)
    if (before && before.place > place) {
      const named = ({ type, id }: Event) => `${type} (${id}, ${timeOf(id).toISOString()})`
      found.push(`${reader}: ${event.subject} has ${named(event)} before ${named(before)}`)
    } else last.set(event.subject, { ...event, place })
  }
  return found
}

const ends = new Set(['deployment.ready', 'deployment.error', 'deployment.canceled'])

/** Each acknowledged write has left its event, once; each deployment has ended once. */
export function compareWrites(log: Event[], expected: Expected[], deployments: Set<string>): Compared {
  const compared: Compared = { lost: [], repeated: [] }
  const counts = new Map<string, number>()
  const count = (key: string) => counts.set(key, (counts.get(key) ?? 0) + 1)
  for (const { type, subject } of log) {
    count(`${type} ${subject}`)
    if (ends.has(type)) count(`the end of ${subject}`)
  }
  const ended = [...deployments].map((subject) => ({ type: 'the end of', subject, times: 1 }))
  for (const { type, subject, times } of [...expected, ...ended]) {
    const found = counts.get(`${type} ${subject}`) ?? 0
    if (found < times) compared.lost.push(`log: ${type} ${subject} is there ${found} times, not ${times}`)
    if (found > times) compared.repeated.push(`log: ${type} ${subject} is there ${found} times, not ${times}`)
  }
  return compared
}
