// The entry of the edge.

export type { ServerProjects } from './hosts/server-projects.ts'
export { openSwitches } from './hosts/switches.ts'
export { createEdge } from './serve/server.ts'
