// The entry of the nameserver, and of its transfers to secondaries.
export { createNameserver } from './server.ts'
export { createTransfers } from './transfer/transfers.ts'
