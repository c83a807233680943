// Public entry point of crons: listing crons, and starting and ending their runs.
export { listCronRuns, listCrons } from './crons.ts'
export { deleteOldRuns, endRun, type RunResult, requeueForgottenCrons, type StartedRun, startRun } from './runs.ts'
