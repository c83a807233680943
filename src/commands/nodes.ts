// `berth nodes`, `berth drain <node>`, `berth undrain <node>`: the processes of the installation.
import type { Config } from '../config.ts'
import { openStorage } from '../roles/opening/storage.ts'
import { drainNodes, listAllNodes, type NodeView } from '../services/nodes/index.ts'
import { table } from './table.ts'
import { UsageError } from './usage-error.ts'

export async function nodes(config: Config, json: boolean): Promise<void> {
  const storage = await openStorage(config)
  try {
    const items = await listAllNodes(storage.db)
    console.log(json ? JSON.stringify(items, null, 2) : describe(items))
  } finally {
    await storage.close()
  }
}

/** `node`: an id, or the name of a machine, which stands for all its processes. */
export async function drain(config: Config, node: string, draining: boolean): Promise<void> {
  const storage = await openStorage(config)
  try {
    const nodes = await drainNodes(storage.db, node, draining)
    if (nodes.length === 0) throw new UsageError(`There is no running node ${node}; \`berth nodes\` shows them.`)
    for (const { id, name, roles } of nodes) {
      console.log(`${id} (${roles.join(', ')} on ${name}) ${draining ? 'drains now' : 'takes work again'}.`)
    }
  } finally {
    await storage.close()
  }
}

function describe(items: NodeView[]): string {
  if (items.length === 0) return 'No nodes are running.'
  const rows = items.map(({ id, name, roles, version, address, state, load, heartbeatAt }) => [
    id,
    name,
    roles.join(','),
    version,
    address ?? '–',
    state,
    [`cpu ${load.cpu}`, ...Object.entries(load.work).map(([what, count]) => `${what} ${count}`)].join(', '),
    heartbeatAt,
  ])
  return table(['ID', 'NAME', 'ROLES', 'VERSION', 'ADDRESS', 'STATE', 'LOAD', 'HEARTBEAT'], rows)
}
