// The public interface of the engine that discovers the records on a domain's current nameservers.
export { createDiscovery } from './discovery.ts'
