// The Node of a server: the one that it was built with, on every machine.
import type { Tree } from '../../platform/artifacts.ts'
import { openNode } from '../../sandbox/node-versions.ts'
import { type Programs, ProgramUnavailable } from '../../sandbox/programs.ts'
import type { MountedProgram } from '../../sandbox/sandbox.ts'
import { ServerUnavailable } from './failures.ts'

export async function nodeOf(programs: Programs | undefined, { node }: Tree): Promise<MountedProgram[]> {
  if (!programs) return []
  return openNode(programs, node).catch((error) => {
    throw error instanceof ProgramUnavailable ? new ServerUnavailable(error.message) : error
  })
}
