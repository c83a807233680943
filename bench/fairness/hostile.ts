// The hostile tenant, in a process of its own: begins an act, goes on with it, and stops when told.
import { answerParent } from '../children.ts'
import { acts, type Hostile, type Tally } from './acts.ts'

export type Order = { begin: string; hostile: Hostile } | { stop: true }

let stopping = new AbortController()
let running: Promise<unknown> = Promise.resolve()
let tally: Tally = {}

async function obey(order: Order): Promise<Tally | string> {
  if ('stop' in order) {
    stopping.abort()
    await running
    return tally
  }
  const act = acts.find(({ name }) => name === order.begin)!
  stopping = new AbortController()
  tally = {}
  running = act.run(order.hostile, stopping.signal, tally).catch((error) => {
    // What is under way when the act ends is cut off.
    if (!stopping.signal.aborted) console.error(`${act.name} failed:`, error)
  })
  return 'begun'
}

answerParent(obey, async () => stopping.abort())
