// Public entry point of production: the deployment that serves it, promotions, and its history.
export { isServedBy, listProduction } from './production.ts'
export { promoteDeployment, rollBack, unpinProject } from './promotion.ts'
export { type EdgeNode, edgeLeaseMs, endEdgeLease, endSwitches, recordShown, renewEdgeLease } from './switches.ts'
