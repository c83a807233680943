// Checks that a nameserver answers, by sending itself queries: over TCP and UDP, at every address, to every thread.
import { randomInt } from 'node:crypto'
import { type ListenAddress, reachableAddress } from '../../../dns/listen-address.ts'
import { exchangeOverTcp, exchangeOverUdp } from '../../../dns/packet/exchange.ts'
import { encodeQuestion } from '../../../dns/packet/message.ts'
import { typeNumbers } from '../../../dns/packet/numbers.ts'

const timeoutMs = 250
const rounds = 3
// The system chooses a thread by the query's source port, so queries come from several.
const queriesPerThread = 8
const queriesPerRound = 64
const chaos = 3

/** A thread refuses this class without zones and without the main thread. */
function selfQuery(): Buffer {
  const query = encodeQuestion('id.server', { id: randomInt(1 << 16), type: typeNumbers.TXT, recursive: false })!
  query.writeUInt16BE(chaos, query.length - 2)
  return query
}

/**
 * Resolves with true once all have answered. `silentThreads` returns how many threads of a listener haven't answered any
 * query yet; later calls query them again.
 */
export function createSelfQueries(
  listeners: readonly ListenAddress[],
  silentThreads: (listener: number) => number,
): () => Promise<boolean> {
  const answered = { tcp: new Set<number>(), udp: new Set<number>() }

  async function ask(index: number): Promise<boolean> {
    const server = reachableAddress(listeners[index]!)!
    if (!answered.tcp.has(index)) {
      if (typeof (await exchangeOverTcp(server, selfQuery(), { timeoutMs })) === 'string') return false
      answered.tcp.add(index)
    }
    for (let round = 0; round < rounds; round++) {
      const silent = silentThreads(index)
      if (silent === 0 && answered.udp.has(index)) return true
      const count = Math.min(queriesPerRound, Math.max(1, silent * queriesPerThread))
      const asked = Array.from({ length: count }, () => exchangeOverUdp(server, selfQuery(), { timeoutMs }))
      if ((await Promise.all(asked)).some((answer) => typeof answer !== 'string')) answered.udp.add(index)
    }
    return silentThreads(index) === 0 && answered.udp.has(index)
  }

  return async () => (await Promise.all(listeners.map((_, index) => ask(index)))).every(Boolean)
}
