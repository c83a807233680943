// The public interface of the engine that calls crons.
export { createCronHandler } from './handler.ts'
