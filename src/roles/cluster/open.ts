// Runs api and edge in worker processes, for the primary, which has everything that exists once for a server.
import { forgetMember, newMemberId } from '../../services/limits/limits.ts'
import type { Closing } from '../closing.ts'
import type { Shared } from '../shared.ts'
import type { Start } from './messages.ts'
import { createMonitoring, type Monitoring } from './monitoring.ts'
import { startWorkers, type Workers } from './primary.ts'

export type Cluster = { workers: Workers; monitoring: Monitoring }

export async function openCluster(shared: Shared, roles: readonly string[], count: number, closing: Closing) {
  const { config, db, databaseUrl, tickets, registry, health, log } = shared
  const monitoring = createMonitoring(registry, health)
  let ticketKey = ''
  let workers: Workers | null = null
  const unfollow = tickets.follow((key) => {
    ticketKey = key.toString('base64')
    for (const process of workers?.living ?? []) process.tell({ kind: 'ticketKey', key: ticketKey })
  })
  closing.add(unfollow)
  workers = await startWorkers({
    count,
    drainSeconds: config.drainSeconds,
    log,
    startOf: (place): Start => ({
      kind: 'start',
      roles,
      count,
      databaseUrl,
      member: newMemberId(),
      ticketKey,
      keepsSnapshots: place === 0,
    }),
    onEnd(process, unasked) {
      monitoring.noteEnd(process, unasked)
      // What a dead one held open counts no longer; one that left in order has said so itself.
      if (unasked) void forgetMember(db, process.start.member).catch(() => {})
    },
  })
  monitoring.watch(workers)
  closing.add(() => workers.stop(false))
  return { workers, monitoring } satisfies Cluster
}
