// The first step of a clean stop: the process says that it is not ready, and still serves, until balancers know it.

/** Why a worker process stops of which another one takes the place: no balancer needs to know. */
export const replaced = 'replaced'

/** For health. Aborted is the signal when the process begins to stop. */
export function drainReadiness(draining: AbortSignal): () => string | null {
  return () =>
    draining.aborted && draining.reason !== replaced ? 'The process is stopping; it still serves for a moment.' : null
}
