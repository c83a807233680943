// Public entry point of the limits that all API processes share.
export { deleteMember, newMemberId, type OpenKind, openLimits, type SharedLimits } from './limits.ts'
export type { Taken } from './slices.ts'
