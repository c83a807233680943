// Whether a server is ready for visitors: it accepts connections and answers a request for `/`.
import { request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { createConnectionBy } from '../../../sandbox/network/connect.ts'
import type { Connect } from '../../../sandbox/sandbox.ts'

const pollMs = 75
// The first page of a cold server may be slow, but one probe that hangs must not use up all of the time.
const probeMs = 10_000
const goneMs = 250

// A sandbox's forwarder accepts before the server listens, so a broken connection means the same as none.
export const nothingListens = 'nothing listens at the port of the variable PORT'
const noAnswer = 'it accepts connections but gives no answer'
const headOnly = 'it sends the head of an answer and nothing more'
const untried = 'nothing was tried'
const silentCodes = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'EPIPE'])

/** Status of the answer, or what went wrong. With `headSuffices`, the head is an answer. */
function probe(connect: Connect, host: string, timeoutMs: number, headSuffices = false): Promise<number | string> {
  return new Promise((resolve) => {
    const headers = { host, 'user-agent': 'Berth-Health-Check', 'x-forwarded-proto': 'https', accept: '*/*' }
    const asked = request({ createConnection: createConnectionBy(connect), path: '/', headers }, (answer) => {
      // Headers alone are not an answer; the first chunk of a body is, even if the page streams forever.
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
    // An answer that has come while this process was busy is read before the time is up.
    const timer = setTimeout(() => setImmediate(() => asked.destroy(new Error(silence))), timeoutMs)
    asked.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer)
      // If headers came, something listens.
      const gone = silence === noAnswer && silentCodes.has(error.code ?? '')
      resolve(gone ? nothingListens : error.message)
    })
    asked.end()
  })
}

/** Resolves with null when the server is healthy, with the reason if it is not in time or the signal aborts. */
export async function becomesHealthy(
  connect: Connect,
  host: string,
  withinMs: number,
  signal: AbortSignal,
): Promise<string | null> {
  const endMs = performance.now() + withinMs
  let last: number | string = untried
  while (!signal.aborted) {
    const leftMs = endMs - performance.now()
    if (leftMs <= 0) break
    const found = await probe(connect, host, Math.min(probeMs, leftMs))
    if (typeof found === 'number' && found >= 200 && found < 500) return null
    // The last probe may be cut short; then the result of the one before says more.
    const cutShort = found === noAnswer && leftMs < probeMs && last !== untried
    if (typeof found === 'number' || (typeof last === 'string' && !cutShort)) last = found
    await delay(Math.min(pollMs, Math.max(1, endMs - performance.now())))
  }
  return typeof last === 'number' ? `it answers GET / with ${last}` : last
}

/** Whether a server that was healthy still answers in time, with whatever status. */
export async function stillAnswers(connect: Connect, host: string, timeoutMs: number): Promise<boolean> {
  return typeof (await probe(connect, host, timeoutMs, true)) === 'number'
}

/** Whether a server that was healthy no longer accepts connections; a slow server still does. */
export async function isGone(connect: Connect): Promise<boolean> {
  return (await probe(connect, 'localhost', goneMs)) === nothingListens
}
