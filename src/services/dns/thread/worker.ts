// The worker thread for large zones: parses, compares and writes them off the event loop, on its own connections.
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { backendOf, type Db, onConnection, openDatabase } from '../../../platform/database/database.ts'
import { planLargeBatch } from '../records/batches.ts'
import { importAlone, octetsOf, textOf } from '../zones/zone-files.ts'
import { exportText, type Pace } from '../zones/zones.ts'
import {
  type AnyResult,
  type FromThread,
  serializeError,
  type ThreadData,
  type ToThread,
  type ZoneJob,
} from './messages.ts'
import { lowerBackendPriority, lowerThreadPriority } from './priority.ts'

const main = parentPort!
const { databaseUrl, connections } = workerData as ThreadData
const db = openDatabase(databaseUrl, connections, { class: 'zones' })
const running = new Map<number, AbortController>()
// The thread sleeps as long as it has worked, so it uses at most half a CPU.
const maxRestMs = 20

lowerThreadPriority()

async function work(connection: Db, job: ZoneJob, pace: Pace): Promise<AnyResult> {
  lowerBackendPriority(databaseUrl, backendOf(connection))
  if (job.kind === 'batch') return planLargeBatch(connection, job.actor, job.path, job)
  if (job.kind === 'export') {
    const { text, etag } = await exportText(connection, job, pace)
    return { octets: octetsOf(text), etag }
  }
  const { octets, ...request } = job
  const view = await importAlone(connection, { ...request, file: textOf(octets) }, pace)
  return { octets: octetsOf(JSON.stringify(view)) }
}

async function run(id: number, job: ZoneJob): Promise<void> {
  const canceling = new AbortController()
  running.set(id, canceling)
  let workingSinceMs = performance.now()
  const pace: Pace = async (locked) => {
    const workedMs = performance.now() - workingSinceMs
    if (locked) await nextTurn()
    else await sleep(Math.min(workedMs, maxRestMs))
    canceling.signal.throwIfAborted()
    workingSinceMs = performance.now()
  }
  let answer: FromThread
  try {
    answer = { id, result: await onConnection(db, (connection) => work(connection, job, pace)) }
  } catch (error) {
    answer = { id, error: serializeError(error) }
  }
  running.delete(id)
  main.postMessage(answer, 'result' in answer && 'octets' in answer.result ? [answer.result.octets.buffer] : [])
}

main.on('message', (message: ToThread) => {
  if ('cancel' in message) running.get(message.cancel)?.abort()
  else void run(message.id, message.job)
})
