// Runs api and edge in worker processes; the primary runs what a server has only once.
import { deleteMember, newMemberId } from '../../services/limits/index.ts'
import type { Closing } from '../opening/closing.ts'
import type { Start, ToWorker } from '../opening/messages.ts'
import type { Shared } from '../opening/shared.ts'
import { createMonitoring } from './monitoring.ts'
import { startWorkers, type Workers } from './primary.ts'

export type ClusterOptions = Pick<Start, 'roles' | 'node' | 'count'>

export async function openCluster(shared: Shared, options: ClusterOptions, closing: Closing): Promise<Workers> {
  const { config, db, databaseUrl, tickets, registry, health, draining, load, monitored, log } = shared
  const monitoring = createMonitoring(registry, health)
  let ticketKey = ''
  let workers: Workers | null = null
  function sendAll(message: ToWorker): void {
    for (const process of workers?.living ?? []) process.send(message)
  }
  const unfollow = tickets.follow((key) => {
    ticketKey = key.toString('base64')
    sendAll({ kind: 'ticketKey', key: ticketKey })
  })
  closing.add(unfollow)
  workers = await startWorkers({
    count: options.count,
    drainSeconds: config.drainSeconds,
    log,
    startOf: (slot) => ({
      kind: 'start',
      ...options,
      databaseUrl,
      member: newMemberId(),
      ticketKey,
      keepsSnapshots: slot === 0,
      drained: draining.has('drained'),
    }),
    onEnd(process, unexpected) {
      monitoring.noteEnd(process, unexpected)
      // Waits and streams of a dead worker no longer count; one that shut down has said so itself.
      if (unexpected) void deleteMember(db, process.start.member).catch(() => {})
    },
  })
  const started = workers
  closing.add(() => started.stop(false))
  for (const change of ['abort', 'resume']) {
    draining.addEventListener(change, () => sendAll({ kind: 'drained', drained: draining.has('drained') }))
  }
  load.include(() => started.processes.map((process) => process.load))
  monitoring.watch(started)
  Object.assign(monitored, monitoring.monitored)
  return started
}
