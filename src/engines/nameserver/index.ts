// The door of the nameserver, its transfers to secondaries, and the job that looks up ALIAS targets.
export { createAliasHandler } from './load/alias.ts'
export { createNameserver } from './server.ts'
export { createLagStore } from './transfer/lag-store.ts'
export { createTransfers } from './transfer/transfers.ts'
