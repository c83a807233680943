// The entry of the nameserver, of its transfers to secondaries, and of the job that looks ALIAS targets up.
export { createAliasHandler } from './load/alias.ts'
export { createNameserver } from './server.ts'
export { createLagStore } from './transfer/lag-store.ts'
export { createTransfers } from './transfer/transfers.ts'
