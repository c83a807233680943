// The hostile tenant, a separate process: starts an attack, continues it, and stops on request.
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
    // Requests in progress at the end of the attack are aborted.
    if (!stopping.signal.aborted) console.error(`${act.name} failed:`, error)
  })
  return 'begun'
}

answerParent(obey, async () => stopping.abort())
