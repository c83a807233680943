// The public interface of the engine that runs server projects.

export { openBalancer, startRunner } from './open.ts'
export { createProofs } from './run/proofs.ts'
export type { Runner } from './run/runner.ts'
