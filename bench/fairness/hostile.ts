// The hostile tenant, a separate process: starts an attack, continues it, and stops on request.
import { answerParent } from '../children.ts'
import { attacks, type Hostile, type Tally } from './attacks.ts'

export type Order = { begin: string; hostile: Hostile } | { stop: true }

let stopping = new AbortController()
let running: Promise<unknown> = Promise.resolve()
let tally: Tally = {}

async function handle(order: Order): Promise<Tally | string> {
  if ('stop' in order) {
    stopping.abort()
    await running
    return tally
  }
  const attack = attacks.find(({ name }) => name === order.begin)!
  stopping = new AbortController()
  tally = {}
  running = attack.run(order.hostile, stopping.signal, tally).catch((error) => {
    // Requests in progress at the end of the attack are aborted.
    if (!stopping.signal.aborted) console.error(`${attack.name} failed:`, error)
  })
  return 'begun'
}

answerParent(handle, async () => stopping.abort())
