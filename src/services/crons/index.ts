// Door of crons: when they are due, and what came of each run.
export { listCronRuns, listCrons } from './crons.ts'
export { type BegunRun, beginRun, endRun, forgetOldRuns, type RunResult, requeueForgottenCrons } from './runs.ts'
