// The entry of the edge.

export { createEdge } from './server.ts'
export type { ServerProjects } from './server-projects.ts'
export { openSwitches } from './switches.ts'
