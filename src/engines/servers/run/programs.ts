// Opens the versions of Node and the package manager that a server was built with.
import type { Tree } from '../../../platform/artifacts/artifacts.ts'
import { managerProgram } from '../../../sandbox/programs/managers.ts'
import { openNode } from '../../../sandbox/programs/node-versions.ts'
import { type Programs, ProgramUnavailable } from '../../../sandbox/programs/programs.ts'
import type { MountedProgram } from '../../../sandbox/sandbox.ts'
import { ServerUnavailable } from '../instance/failures.ts'

export async function programsOf(
  programs: Programs | undefined,
  { node, manager }: Pick<Tree, 'node' | 'manager'>,
): Promise<MountedProgram[]> {
  if (!programs) return []
  try {
    const own = await openNode(programs, node)
    return manager ? [...own, await programs.open(managerProgram(manager))] : own
  } catch (error) {
    throw error instanceof ProgramUnavailable ? new ServerUnavailable(error.message) : error
  }
}
