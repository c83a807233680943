// The entry of the job that follows the primaries of zones.
export { createFollowHandler } from './follow.ts'
