// The load generator, in a process of its own: one slice of load on one server, measured by the answers that came.
import autocannon from 'autocannon'
import { answerParent } from '../children.ts'
import { endpoints } from './endpoints.ts'

export type Slice = { endpoint: string; url: string; token: string; size: number; connections: number; seconds: number }
/** `all` counts the answers before and after the measured time too. */
export type Measured = { perSecond: number; p50Ms: number; p99Ms: number; failures: number; all: number }

// Connecting and the first answers are not measured.
const rampMs = 150
// More requests than will be answered, so that nothing is sent twice in a slice: this many before anything is known.
const firstGuessPerSecond = 12_000
const margin = 1.7
const answeredWithinMs = 60_000

const fastest = new Map<string, number>()
let serial = 0

/** Where a busy machine let nothing be answered in its time, a slice says nothing, and is taken again. */
async function drive(slice: Slice): Promise<Measured> {
  const endMs = performance.now() + answeredWithinMs
  for (let all = 0; ; ) {
    const measured = await driveOnce(slice)
    all += measured.all
    if (measured.perSecond > 0) return { ...measured, all }
    if (measured.failures > 0 || performance.now() > endMs) {
      throw new Error(`${slice.endpoint} at ${slice.url}: no answers, ${measured.failures} failures`)
    }
  }
}

async function driveOnce(slice: Slice): Promise<Measured> {
  const { request } = endpoints.find(({ name }) => name === slice.endpoint)!
  const expected = margin * (fastest.get(slice.endpoint) ?? firstGuessPerSecond / margin)
  const each = 20 + Math.ceil((expected * (slice.seconds + rampMs / 1000)) / slice.connections)
  // Built before the clock starts: the generator shares its cores with the servers.
  const prepared = Array.from({ length: slice.connections }, () =>
    Array.from({ length: each }, () => request(slice.size, ++serial)),
  )
  const run = autocannon({
    url: slice.url,
    connections: slice.connections,
    duration: slice.seconds + rampMs / 1000,
    sampleInt: 25,
    timeout: 10,
    headers: { authorization: `Bearer ${slice.token}`, 'content-type': 'application/json' },
    setupClient: (client) => client.setRequests(prepared.pop()!),
  })
  const start = performance.now() + rampMs
  const end = start + slice.seconds * 1000
  const times: number[] = []
  let failures = 0
  let all = 0
  run.on('response', (_client, status: number, _bytes, ms: number) => {
    all++
    const now = performance.now()
    if (now < start || now > end) return
    if (status >= 200 && status < 300) times.push(ms)
    else failures++
  })
  run.on('reqError', () => failures++)
  await run
  times.sort((a, b) => a - b)
  const quantile = (part: number) => times[Math.min(times.length - 1, Math.floor(times.length * part))] ?? Number.NaN
  const perSecond = times.length / slice.seconds
  fastest.set(slice.endpoint, Math.max(perSecond, fastest.get(slice.endpoint) ?? 0))
  return {
    perSecond,
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    failures,
    all,
  }
}

answerParent(drive, async () => {})
