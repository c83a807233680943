// The public interface of the engine that follows the primaries of zones.
export { createFollowHandler } from './follow.ts'
