// The load generator, a separate process: puts one slice of load on one server and measures its responses.
import autocannon from 'autocannon'
import { answerParent } from '../children.ts'
import { maxSliceSeconds, stopAfter } from '../slices.ts'
import { endpoints } from './endpoints.ts'

export type Slice = { endpoint: string; url: string; token: string; size: number; connections: number; seconds: number }
/** `all` also counts the responses before and after the measured time. */
export type Measured = { perSecond: number; p50Ms: number; p99Ms: number; failures: number; all: number }

// Connecting and the first responses are not measured.
const rampMs = 150
// More requests than a slice can complete, so that none is sent twice; this many before the rate is known.
const firstGuessPerSecond = 12_000
const margin = 1.7

const fastest = new Map<string, number>()
let serial = 0

async function drive(slice: Slice): Promise<Measured> {
  const { request } = endpoints.find(({ name }) => name === slice.endpoint)!
  const expected = margin * (fastest.get(slice.endpoint) ?? firstGuessPerSecond / margin)
  const each = 20 + Math.ceil((expected * (slice.seconds + rampMs / 1000)) / slice.connections)
  // Built before the clock starts, because the generator shares its cores with the servers.
  const prepared = Array.from({ length: slice.connections }, () =>
    Array.from({ length: each }, () => request(slice.size, ++serial)),
  )
  const run = autocannon({
    url: slice.url,
    connections: slice.connections,
    duration: slice.seconds + maxSliceSeconds,
    sampleInt: 25,
    timeout: maxSliceSeconds,
    headers: { authorization: `Bearer ${slice.token}`, 'content-type': 'application/json' },
    setupClient: (client) => client.setRequests(prepared.pop()!),
  })
  const start = performance.now() + rampMs
  const end = start + slice.seconds * 1000
  const times: number[] = []
  let elapsedMs = slice.seconds * 1000
  let failures = 0
  let all = 0
  const isAnswered = () => times.length + failures > 0
  run.on('response', (_client, status: number, _bytes, ms: number) => {
    all++
    const now = performance.now()
    if (now < start || (now > end && isAnswered())) return
    if (status >= 200 && status < 300) times.push(ms)
    else failures++
    if (now > end) elapsedMs = now - start
  })
  run.on('reqError', () => failures++)
  stopAfter(run, end - performance.now(), isAnswered)
  await run
  if (times.length === 0) throw new Error(`${slice.endpoint} at ${slice.url}: no answers, ${failures} failures`)
  times.sort((a, b) => a - b)
  const quantile = (part: number) => times[Math.min(times.length - 1, Math.floor(times.length * part))]!
  const perSecond = (times.length * 1000) / elapsedMs
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
