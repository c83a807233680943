// The public interface of the engine that posts commit statuses.
export { createStatusHandler } from './handler.ts'
