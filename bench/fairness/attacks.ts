// The attacks of a hostile tenant: each runs until it is stopped, and counts successes and refusals.
import { setTimeout as sleep } from 'node:timers/promises'

/** `deployment` stays BUILDING during the whole benchmark. */
export type Hostile = {
  apiPort: number
  token: string
  zone: string
  project: string
  deployment: string
  records: number
}

export type Tally = Record<string, number>

export type Attack = { name: string; run(hostile: Hostile, signal: AbortSignal, tally: Tally): Promise<void> }

/** A zone file with this many records; versions have none in common. */
function zoneFile(records: number, version: number): string {
  const lines: string[] = []
  for (let n = 0; n < records; n++) lines.push(`h${n} 300 A 10.${version}.${n >> 8}.${n & 255}\n`)
  return lines.join('')
}

function call(hostile: Hostile, path: string, init: RequestInit): Promise<Response> {
  const headers = { authorization: `Bearer ${hostile.token}`, ...(init.headers as Record<string, string>) }
  return fetch(`http://127.0.0.1:${hostile.apiPort}/api${path}`, { ...init, headers })
}

async function count(tally: Tally, pending: Promise<Response>): Promise<Response> {
  const response = await pending
  tally[response.status] = (tally[response.status] ?? 0) + 1
  return response
}

/** Repeats a request; after a refusal, waits for Retry-After or a second. */
async function repeat(signal: AbortSignal, once: () => Promise<Response>): Promise<void> {
  while (!signal.aborted) {
    const response = await once()
    await response.arrayBuffer()
    const waitSeconds = response.ok ? 0 : Number(response.headers.get('retry-after') ?? 1)
    if (waitSeconds > 0) await sleep(waitSeconds * 1000, undefined, { signal }).catch(() => {})
  }
}

const put = (hostile: Hostile, query: string, body: string, signal: AbortSignal) =>
  call(hostile, `/dns/${hostile.zone}/zone${query}`, {
    method: 'PUT',
    headers: { 'content-type': 'text/dns', 'if-match': '*' },
    body,
    signal,
  })

/** Keeps `size` requests open, replacing those that end. */
async function keepOpen(size: number, signal: AbortSignal, once: () => Promise<Response>): Promise<void> {
  await Promise.all(Array.from({ length: size }, () => repeat(signal, once)))
}

const imports: Attack = {
  name: 'imports',
  async run(hostile, signal, tally) {
    const files = [1, 2].map((version) => zoneFile(hostile.records, version))
    let turn = 0
    await repeat(signal, () => count(tally, put(hostile, '', files[turn++ % 2]!, signal)))
  },
}

const dryRuns: Attack = {
  name: 'dry runs of 1 MiB',
  async run(hostile, signal, tally) {
    const zone = zoneFile(60_000, 3).slice(0, 1024 * 1024)
    const file = zone.slice(0, zone.lastIndexOf('\n') + 1)
    await repeat(signal, () => count(tally, put(hostile, '?dryRun=true', file, signal)))
  },
}

const exports: Attack = {
  name: 'exports',
  run: (hostile, signal, tally) =>
    keepOpen(4, signal, () => count(tally, call(hostile, `/dns/${hostile.zone}/zone`, { signal }))),
}

const waits: Attack = {
  name: 'waits',
  run: (hostile, signal, tally) =>
    keepOpen(200, signal, () => count(tally, call(hostile, `/deployments/${hostile.deployment}?wait=60`, { signal }))),
}

const streams: Attack = {
  name: 'streams',
  run: (hostile, signal, tally) =>
    keepOpen(100, signal, () =>
      count(tally, call(hostile, '/events', { headers: { accept: 'text/event-stream' }, signal })),
    ),
}

const builds: Attack = {
  name: 'queued builds',
  async run(hostile, signal, tally) {
    const body = JSON.stringify({ project: hostile.project })
    const headers = { 'content-type': 'application/json' }
    const created: string[] = []
    for (let number = 0; number < 12 && !signal.aborted; number++) {
      const response = await count(tally, call(hostile, '/deployments', { method: 'POST', headers, body, signal }))
      if (response.ok) created.push(((await response.json()) as { id: string }).id)
    }
    await sleep(600_000, undefined, { signal }).catch(() => {})
    for (const id of created) await call(hostile, `/deployments/${id}/cancel`, { method: 'POST' })
  },
}

const everything: Attack = {
  name: 'all of these',
  async run(hostile, signal, tally) {
    const all = [imports, dryRuns, exports, waits, streams, builds]
    await Promise.all(all.map((attack) => attack.run(hostile, signal, tally)))
  },
}

export const attacks: readonly Attack[] = [imports, dryRuns, exports, waits, streams, builds, everything]
