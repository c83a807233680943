// The entry of the engine that calls crons.
export { createCronHandler } from './handler.ts'
