// The load, a separate process: lanes with a steady pace each, which count and report failures.
import { setTimeout as sleep } from 'node:timers/promises'
import { answerParent } from '../children.ts'
import { type Lane, lanesOf, type World } from './lanes.ts'

export type Tally = { requests: Record<string, number>; failures: number; late: number; firstFailures: string[] }
export type Order = { begin: World & { only: string[]; scale: number } } | 'tally' | 'stop'

const maxOpen = 256
const tickMs = 10
// The pace grows for this long, because a new process runs code that isn't compiled yet.
const rampMs = 60_000
const maxTold = 10

const stopping = new AbortController()
const tally: Tally = { requests: {}, failures: 0, late: 0, firstFailures: [] }
let running: Promise<unknown> = Promise.resolve()
let leave = () => {}

/** Each request has a scheduled time, whether or not the previous one has a response; excess ones are skipped and counted. */
async function drive({ name, perSecond, once }: Lane): Promise<void> {
  const startMs = performance.now()
  const open = new Set<Promise<void>>()
  const start = (number: number) => {
    const pending: Promise<void> = once(number)
      .then(() => {
        tally.requests[name] = (tally.requests[name] ?? 0) + 1
      })
      .catch((error) => {
        if (stopping.signal.aborted) return
        tally.failures++
        if (tally.firstFailures.length < maxTold) tally.firstFailures.push(`${name}: ${(error as Error).message}`)
      })
      .finally(() => open.delete(pending))
    open.add(pending)
  }
  for (let number = 0; !stopping.signal.aborted; ) {
    for (const due = (fullPaceMs(performance.now() - startMs) * perSecond) / 1000; number < due; number++) {
      if (open.size < maxOpen) start(number)
      else tally.late++
    }
    await sleep(tickMs)
  }
  await Promise.all(open)
}

/** How long sending as much would have taken at full pace. */
const fullPaceMs = (sinceMs: number) => (sinceMs < rampMs ? sinceMs ** 2 / (2 * rampMs) : sinceMs - rampMs / 2)

async function obey(order: Order): Promise<Tally> {
  if (order === 'stop') {
    stopping.abort()
    leave()
    await running
  } else if (order !== 'tally') {
    const { only, scale, ...world } = order.begin
    const { lanes, close } = await lanesOf(world, stopping.signal)
    leave = close
    const selected = lanes.filter(({ name }) => only.length === 0 || only.some((part) => name.startsWith(part)))
    running = Promise.all(selected.map((lane) => drive({ ...lane, perSecond: lane.perSecond * scale })))
  }
  return tally
}

answerParent(obey, async () => stopping.abort())
