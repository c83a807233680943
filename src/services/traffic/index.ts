// Door of traffic: rollups of what engines count.
export { forgetOldTraffic } from './retention.ts'
export { type Rollups, startDnsRollups, startTrafficRollups } from './rollups.ts'
export { readAccountTraffic, readProjectTraffic, readZoneTraffic } from './traffic.ts'
