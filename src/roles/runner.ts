// The runner role: runs the servers of server projects, and connects edges to them.
import { type Runner, startRunner } from '../engines/servers/index.ts'
import type { Closing } from './closing.ts'
import type { Sandboxed } from './sandbox.ts'
import type { Shared } from './shared.ts'

/** `node`: the id of this process, and where edges reach it if that is not where it listens. */
export type NodeIdentity = { id: string; address: string | null }

export async function openRunner(deps: Shared & Sandboxed, node: NodeIdentity, closing: Closing): Promise<Runner> {
  const runner = await startRunner(deps, node)
  closing.add(deps.health.add('runner', runner.readiness, []))
  closing.add(() => runner.close())
  return runner
}
