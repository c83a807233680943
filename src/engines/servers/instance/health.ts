// Probes servers: a healthy one accepts connections and responds to a request for `/`.
import { request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { createConnectionBy } from '../../../sandbox/network/connect.ts'
import type { Connect } from '../../../sandbox/sandbox.ts'

const pollMs = 75
// The first page of a cold server may be slow, but one hanging probe must not use up all of the time.
const probeTimeoutMs = 10_000
const goneTimeoutMs = 250

// A sandbox's forwarder accepts connections before the server listens, so a broken connection means that nothing listens.
export const nothingListens = 'nothing listens at the port of the variable PORT'
const noAnswer = 'it accepts connections but gives no answer'
const headOnly = 'it sends the head of an answer and nothing more'
const noProbe = 'nothing was tried'
const silentCodes = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'EPIPE'])

/** Returns the status of the response, or what went wrong. With `headSuffices`, it doesn't wait for the body. */
function probe(connect: Connect, host: string, timeoutMs: number, headSuffices = false): Promise<number | string> {
  return new Promise((resolve) => {
    const headers = { host, 'user-agent': 'Berth-Health-Check', 'x-forwarded-proto': 'https', accept: '*/*' }
    const probing = request({ createConnection: createConnectionBy(connect), path: '/', headers }, (answer) => {
      // Waits for the first chunk of the body. The rest may stream forever.
      const done = () => {
        clearTimeout(timer)
        resolve(answer.statusCode!)
        answer.destroy()
      }
      silence = headOnly
      if (headSuffices) done()
      answer.once('data', done).once('end', done)
      answer.on('error', () => {
        clearTimeout(timer)
        resolve(silence)
      })
    })
    let silence = noAnswer
    // If this process was busy, a response that already arrived is read before the probe times out.
    const timer = setTimeout(() => setImmediate(() => probing.destroy(new Error(silence))), timeoutMs)
    probing.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer)
      // If headers arrived, something listens.
      const gone = silence === noAnswer && silentCodes.has(error.code ?? '')
      resolve(gone ? nothingListens : error.message)
    })
    probing.end()
  })
}

/** Returns null once the server is healthy, or the reason after a timeout or an abort. */
export async function waitUntilHealthy(
  connect: Connect,
  host: string,
  withinMs: number,
  signal: AbortSignal,
): Promise<string | null> {
  const endMs = performance.now() + withinMs
  let last: number | string = noProbe
  while (!signal.aborted) {
    const remainingMs = endMs - performance.now()
    if (remainingMs <= 0) break
    const result = await probe(connect, host, Math.min(probeTimeoutMs, remainingMs))
    if (typeof result === 'number' && result >= 200 && result < 500) return null
    // If the last probe was cut short, the result of the previous one says more.
    const cutShort = result === noAnswer && remainingMs < probeTimeoutMs && last !== noProbe
    if (typeof result === 'number' || (typeof last === 'string' && !cutShort)) last = result
    await delay(Math.min(pollMs, Math.max(1, endMs - performance.now())))
  }
  return typeof last === 'number' ? `it answers GET / with ${last}` : last
}

/** Whether a previously healthy server still responds in time, with any status. */
export async function stillResponds(connect: Connect, host: string, timeoutMs: number): Promise<boolean> {
  return typeof (await probe(connect, host, timeoutMs, true)) === 'number'
}

/** Whether a previously healthy server no longer accepts connections. A slow server still does. */
export async function isGone(connect: Connect): Promise<boolean> {
  return (await probe(connect, 'localhost', goneTimeoutMs)) === nothingListens
}
