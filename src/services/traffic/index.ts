// Public entry point of traffic: rollups of the counts of edges and nameservers.
export { deleteOldTraffic } from './retention.ts'
export { type Rollups, startDnsRollups, startTrafficRollups } from './rollups.ts'
export { readAccountTraffic, readProjectTraffic, readZoneTraffic } from './traffic.ts'
