// A thread that answers UDP queries from its cache, or because no zone contains the name. It hands all others to the main
// thread.
import { parentPort, workerData } from 'node:worker_threads'
import { decodeQuery, emptyQuery } from '../../../dns/packet/query.ts'
import { createAnswerCache } from '../answer/cache.ts'
import { createCookies } from '../answer/cookies.ts'
import { createTallies } from '../answer/metrics.ts'
import { createRateLimit } from '../answer/rate-limit.ts'
import { createAnswersWithoutZones, isSpecial } from '../answer/without-zones.ts'
import { reflectingPorts } from '../serve/udp.ts'
import { Gaps } from '../zones/gaps.ts'
import { NameFilter } from '../zones/name-filter.ts'
import { createTallyBook } from '../zones/traffic.ts'
import { Stamped } from './generations.ts'
import {
  createPacker,
  type FromWorker,
  type SharedAnswer,
  type ToWorker,
  type WorkerData,
  type ZoneGaps,
} from './messages.ts'
import { type Answer, loadPacketSockets, peerOf } from './packets.ts'

const main = parentPort!
const data = workerData as WorkerData
const sockets = (await loadPacketSockets())!
// More than a second of work for the main thread; after that, clients have retried.
const maxOutstanding = 10_000
// How long the thread sleeps without packets, which also delays its exit.
const idleMs = 50
// How late a query may be counted.
const reportMs = 5_000
// Consecutive batches of one socket before the other sockets and the main thread get their turn.
const maxBatches = 16

const cache = createAnswerCache<Stamped>()
const filter = new NameFilter(data.names)
const cookies = createCookies(Buffer.from(data.cookieSecret))
const rateLimit = data.rateLimit && createRateLimit(data.rateLimit)
const tallies = createTallies(data.tallies)
const generations = new Int32Array(data.generations)
const outstanding = new Int32Array(data.outstanding)
const answering = new Int32Array(data.answering)
const handOver = createPacker((octets) => main.postMessage(octets, [octets.buffer]))
const query = emptyQuery()

const questions = createTallyBook()

// They are sent again when needed.
const maxGaps = 20_000
/** By zone. */
const gapsOfZones = new Map<string, Gaps>()

function addGaps({ zone, table }: ZoneGaps): void {
  if (gapsOfZones.get(zone)?.table.id === table.id) return
  if (gapsOfZones.size >= maxGaps) gapsOfZones.clear()
  gapsOfZones.set(zone, new Gaps(table))
}

function addAnswer({ hash, octets: sent, stamp, zone, gaps: id, ...answer }: SharedAnswer): void {
  const gaps = id === null ? null : gapsOfZones.get(zone)
  // The gaps of this answer were dropped; both will be sent again.
  if (gaps === undefined || (gaps && gaps.table.id !== id)) return
  const octets = Buffer.from(sent.buffer, sent.byteOffset, sent.length)
  const source = new Stamped(generations, stamp, questions.of(zone))
  cache.set(hash, { ...answer, octets, start: 0, end: sent.length, source, gaps })
}

main.on('message', (message: ToWorker) => {
  if (message === 'report') return report(true)
  if (!Array.isArray(message)) return addGaps(message)
  for (const answer of message) addAnswer(answer)
})

function report(always: boolean): void {
  cache.count()
  const counted: FromWorker = questions.take()
  if (always || counted.length > 0) main.postMessage(counted)
}
setInterval(report, reportMs, false)

function answerOn(listener: number, nsid: string): Answer {
  const withoutZones = createAnswersWithoutZones({ cache, filter, cookies, rateLimit, tallies, nsid })

  function answer(message: Buffer, sender: Buffer): Buffer | null {
    const peer = peerOf(sender)
    if (reflectingPorts.has(peer.port) || !decodeQuery(message, query)) {
      tallies.drop(reflectingPorts.has(peer.port) ? 'source' : 'unreadable')
      return null
    }
    const known = isSpecial(query, false)
      ? undefined
      : withoutZones.answer(withoutZones.contextOf(message, query, peer, false))
    if (known !== undefined) {
      if (known !== null && answering[listener] === 0) Atomics.store(answering, listener, 1)
      return known
    }
    if (Atomics.add(outstanding, 0, 1) < maxOutstanding) handOver({ listener, sender, message })
    else {
      Atomics.sub(outstanding, 0, 1)
      tallies.drop('busy')
    }
    return null
  }

  return (message, sender) => {
    try {
      return answer(message, sender)
    } catch {
      tallies.drop('fault')
      return null
    }
  }
}

const onOversized = () => tallies.drop('unreadable')
const wait = sockets.waiter(data.listeners.map(({ socket }) => socket))
const readers = data.listeners.map(({ socket, nsid }, index) =>
  sockets.reader(socket, answerOn(index, nsid), onOversized),
)

function turn(): void {
  wait(idleMs)
  for (const read of readers) for (let batches = 0; batches < maxBatches && read(); batches++);
  setImmediate(turn)
}
turn()
