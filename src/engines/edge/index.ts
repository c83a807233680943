// The public interface of the edge engine.

export type { ServerProjects } from './hosts/server-projects.ts'
export { openSwitches } from './hosts/switches.ts'
export { createEdge } from './serve/server.ts'
