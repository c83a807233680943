// Door of production: which deployment serves it, and what served it before.
export { isServedBy, listProduction } from './production.ts'
export { promoteDeployment, rollBack, unpinProject } from './promotion.ts'
export { type EdgeNode, edgeLeaseMs, endEdgeLease, endSwitches, noteShown, renewEdgeLease } from './switches.ts'
