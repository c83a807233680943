// Door of limits that all API processes share.
export { forgetMember, newMemberId, type OpenKind, openLimits, type SharedLimits } from './limits.ts'
export type { Taken } from './slices.ts'
