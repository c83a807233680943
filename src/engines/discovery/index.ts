// The entry of the engine that finds out what the present nameservers of a domain have.
export { createDiscovery } from './discovery.ts'
