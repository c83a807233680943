// The threads that answer over UDP: starts them, sends them answers, and replaces those that exit.
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import { programFile } from '../../../platform/installation.ts'
import { type AnswerCache, answerHash, belowHash, type CachedAnswer } from '../answer/cache.ts'
import type { NameserverMetrics } from '../answer/metrics.ts'
import type { Responder } from '../serve/responder.ts'
import type { Gaps } from '../zones/gaps.ts'
import { addQuestions, type TallyBook } from '../zones/traffic.ts'
import type { ZoneSource } from '../zones/zone-table.ts'
import type { Generations } from './generations.ts'
import {
  createBatch,
  type FromWorker,
  type HandedPacket,
  type SharedAnswer,
  type ToWorker,
  unpack,
  type WorkerData,
} from './messages.ts'
import { type PacketSockets, peerOf } from './packets.ts'

export type SharedListener = {
  /** One per thread. */
  sockets: number[]
  nsid: string
  /** Creates a responder that stores its answers in this cache. */
  responderFor(cache: AnswerCache<ZoneSource>): Responder
}

export type PoolOptions = Pick<WorkerData, 'cookieSecret' | 'rateLimit'> & {
  workers: number
  packets: PacketSockets
  listeners: readonly SharedListener[]
  cache: AnswerCache<ZoneSource>
  generations: Generations
  generationMemory: SharedArrayBuffer
  /** The memory of the name filter. */
  nameMemory: SharedArrayBuffer
  metrics: NameserverMetrics
  /** Collects what the threads have counted. */
  questions: TallyBook
  log: Logger
  /** The program of a thread, for tests. */
  program?: string | URL | undefined
}

export type Pool = {
  /** How many threads haven't answered a query at this listener since they started. */
  silent(listener: number): number
  close(): Promise<void>
}

const respawnMs = 1_000
const reportWaitMs = 1_000
// A thread may not have them any more: its memory for them is limited, and it may be a new thread.
const resendMs = 1_000
const defaultProgram = programFile('src/engines/nameserver/workers/worker')

export function startPool(options: PoolOptions): Pool {
  const { listeners, generations, metrics, packets, program = defaultProgram, log } = options
  const workers = new Set<Worker>()
  const timers = new Set<NodeJS.Timeout>()
  /** By thread number, whether it has answered at each listener; set by the thread itself. */
  const answering: Int32Array[] = []
  let closed = false

  const shareAnswer = createBatch((answers: SharedAnswer[]) => {
    for (const worker of workers) post(worker, answers)
  })
  const sentMs = new WeakMap<Gaps, number>()
  function sendGaps(zone: string, gaps: Gaps): void {
    const nowMs = performance.now()
    if (nowMs - (sentMs.get(gaps) ?? -resendMs) < resendMs) return
    sentMs.set(gaps, nowMs)
    for (const worker of workers) post(worker, { zone, table: gaps.table })
  }

  function share(hash: number, found: CachedAnswer<ZoneSource> | null): typeof found {
    if (found) {
      const { octets: all, start, end, below, source, rcode, tuple, dnssec, gaps } = found
      if (gaps) sendGaps(source.id, gaps)
      const octets = new Uint8Array(all.subarray(start, end))
      const key = below ? hash : answerHash(hash, dnssec)
      shareAnswer({
        hash: key,
        octets,
        below,
        rcode,
        tuple,
        dnssec,
        stamp: generations.stampOf(source.origin),
        zone: source.id,
        gaps: gaps?.table.id ?? null,
      })
    }
    return found
  }
  // The threads get an answer when it is requested a second time, so that a flood of questions that nobody repeats doesn't
  // reach them.
  const shared: AnswerCache<ZoneSource> = {
    ...options.cache,
    get: (message, query) => share(query.hash, options.cache.get(message, query)),
    getBelow: (message, query, encloser) =>
      share(belowHash(encloser.encloserHash, query.type), options.cache.getBelow(message, query, encloser)),
  }
  const responders = listeners.map(({ responderFor }) => responderFor(shared))

  function spawn(index: number, tallies: SharedArrayBuffer): void {
    const outstanding = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
    const answered = new SharedArrayBuffer(listeners.length * Int32Array.BYTES_PER_ELEMENT)
    answering[index] = new Int32Array(answered)
    const { cookieSecret, rateLimit, generationMemory, nameMemory } = options
    const own = listeners.map(({ sockets, nsid }) => ({ socket: sockets[index]!, nsid }))
    const data: WorkerData = {
      listeners: own,
      cookieSecret,
      rateLimit,
      tallies,
      generations: generationMemory,
      names: nameMemory,
      outstanding,
      answering: answered,
    }
    const worker = new Worker(program, { workerData: data })
    workers.add(worker)
    const left = new Int32Array(outstanding)

    function answer({ listener, sender, message }: HandedPacket): void {
      Atomics.sub(left, 0, 1)
      const send = (made: Buffer) => {
        if (!closed) packets.send(own[listener]!.socket, sender, made)
      }
      const made = responders[listener]!.respond(message, peerOf(sender), { tcp: false, send })
      if (made instanceof Uint8Array) send(made)
    }

    worker.on('message', (message: FromWorker) => {
      if (message instanceof Uint8Array) for (const packet of unpack(message)) answer(packet)
      else for (const counted of message) addQuestions(options.questions.of(counted.owner), counted)
    })
    worker.on('error', (err) => log.error({ err }, 'a thread of the nameserver failed and is replaced'))
    worker.on('exit', () => {
      workers.delete(worker)
      answering[index] = new Int32Array(listeners.length)
      if (closed) return
      // Its sockets stay open, so packets are queued in them in the meantime.
      const timer = setTimeout(() => {
        timers.delete(timer)
        spawn(index, tallies)
      }, respawnMs)
      timers.add(timer)
    })
  }

  const post = (worker: Worker, message: ToWorker) => worker.postMessage(message)

  /** Resolves when the thread has reported its counts, or doesn't respond. */
  async function lastReport(worker: Worker): Promise<void> {
    const reported = new Promise<void>((resolve) => {
      worker.on('message', (message: FromWorker) => void (message instanceof Uint8Array || resolve()))
      worker.once('exit', () => resolve())
    })
    post(worker, 'report')
    await Promise.race([reported, sleep(reportWaitMs, undefined, { ref: false })])
  }

  for (let index = 0; index < options.workers; index++) spawn(index, metrics.addTallies())
  return {
    silent: (listener) => answering.filter((answered) => answered[listener] === 0).length,
    async close() {
      closed = true
      for (const timer of timers) clearTimeout(timer)
      await Promise.all(Array.from(workers, lastReport))
      await Promise.all(Array.from(workers, (worker) => worker.terminate()))
    },
  }
}
