// Mirrors the placed instances of server projects from the database, with a copy on disk for starts without it.
import type { Logger } from 'pino'
import type { Database } from '../../../platform/database/database.ts'
import { follow } from '../../../platform/database/mirror.ts'
import type { Notifications } from '../../../platform/database/notifications.ts'
import type { Snapshots } from '../../../platform/database/snapshots.ts'
import { readServed, type ServedInstance, wantOnDemand } from '../../../services/instances/index.ts'

export type InstanceTable = {
  of(deploymentId: string): readonly ServedInstance[]
  has(instance: ServedInstance): boolean
  /** Requests an instance of a deployment that has none. */
  request(deploymentId: string): Promise<void>
  /** Called with each deployment whose instances may have changed. */
  onChange(act: (deploymentId: string) => void): void
  close(): Promise<void>
}

export type InstanceTableDeps = {
  db: Database
  notifications: Notifications
  snapshots?: Snapshots | undefined
  log: Logger
}

export async function openInstanceTable(deps: InstanceTableDeps): Promise<InstanceTable> {
  const { db, notifications, snapshots, log } = deps
  let rows = new Map<string, ServedInstance[]>()
  const listeners: ((deploymentId: string) => void)[] = []
  const store = snapshots?.open('instances', function* (): Generator<ServedInstance> {
    for (const instances of rows.values()) yield* instances
  })

  function notify(deploymentIds: Iterable<string>): void {
    for (const id of deploymentIds) for (const act of listeners) act(id)
  }

  function replace(found: ServedInstance[]): void {
    const before = rows
    rows = Map.groupBy(found, ({ deploymentId }) => deploymentId)
    notify(new Set([...before.keys(), ...rows.keys()]))
  }

  const source = {
    what: 'instances',
    listen: (changed: (deploymentId: string) => void) => notifications.on('instance', changed),
    async compare() {
      replace(await readServed(db, null))
      store?.changed()
      return []
    },
    async read(deploymentIds: string[]) {
      const found = Map.groupBy(await readServed(db, deploymentIds), ({ deploymentId }) => deploymentId)
      for (const id of deploymentIds) {
        const instances = found.get(id)
        if (instances) rows.set(id, instances)
        else rows.delete(id)
      }
      notify(deploymentIds)
      store?.changed()
    },
    /** The edge also starts without the copy, because static sites don't need it. */
    async restore() {
      await store?.restore(replace)
      return true
    },
    onCurrent: () => store?.current(),
  }
  const { close } = await follow(source, notifications, log)

  return {
    of: (deploymentId) => rows.get(deploymentId) ?? [],
    has: ({ deploymentId, term }) => rows.get(deploymentId)?.some((one) => one.term === term) ?? false,
    async request(deploymentId) {
      await wantOnDemand(db, { deploymentId })
    },
    onChange: (act) => void listeners.push(act),
    async close() {
      await close()
      await store?.close()
    },
  }
}
