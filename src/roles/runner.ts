// The runner role: runs the servers of server projects, and connects edges to them.
import { type Runner, startRunner } from '../engines/servers/index.ts'
import type { Closing } from './opening/closing.ts'
import type { Shared } from './opening/shared.ts'
import type { Sandboxed } from './sandbox.ts'

/** `node` is the id of this process among the nodes. */
export async function openRunner(deps: Shared & Sandboxed, node: string, closing: Closing): Promise<Runner> {
  const runner = await startRunner(deps, { id: node, address: deps.config.runner.address })
  closing.add(deps.load.add('servers', runner.count))
  closing.add(deps.health.add('runner', runner.readiness, []))
  closing.add(() => runner.close())
  return runner
}
