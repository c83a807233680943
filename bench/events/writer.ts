// The load: creates tickets at a given rate over a connection per account, each with its own token.
import autocannon from 'autocannon'
import { answerParent } from '../children.ts'
import { maxSliceSeconds, stopAfter } from '../slices.ts'

export type Load = { url: string; tokens: string[]; perSecond: number; seconds: number }
export type Written = { perSecond: number; events: number; failures: number; p99Ms: number }

async function write({ url, tokens, perSecond, seconds }: Load): Promise<Written> {
  const body = JSON.stringify({ subject: 'Where is my certificate?', message: 'It has been a day.' })
  const left = [...tokens]
  const run = autocannon({
    url,
    connections: tokens.length,
    duration: seconds + maxSliceSeconds,
    overallRate: perSecond,
    sampleInt: 100,
    timeout: maxSliceSeconds,
    headers: {},
    setupClient: (client) => {
      const headers = { authorization: `Bearer ${left.pop()}`, 'content-type': 'application/json' }
      client.setRequests([{ method: 'POST', path: '/api/tickets', headers, body }])
    },
  })
  const times: number[] = []
  let failures = 0
  const startedMs = performance.now()
  run.on('response', (_client, status: number, _bytes, ms: number) => {
    if (status === 201) times.push(ms)
    else failures++
  })
  run.on('reqError', () => failures++)
  stopAfter(run, seconds * 1000, () => times.length > 0)
  await run
  if (times.length === 0) throw new Error(`No ticket was made at ${url}; ${failures} requests failed.`)
  const tookSeconds = (performance.now() - startedMs) / 1000
  times.sort((a, b) => a - b)
  const p99Ms = times[Math.floor(times.length * 0.99)]!
  return { perSecond: times.length / tookSeconds, events: times.length, failures, p99Ms }
}

answerParent(write, async () => {})
