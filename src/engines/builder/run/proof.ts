// The last step for server projects: the deployment becomes READY only if its server responds.
import { BuildFailure } from '../explain/failure.ts'

/** Nothing is wrong with the server, so the build is postponed. */
export class NoRunner extends Error {}

/** The interface to the engine that runs servers. Rejects if the failure isn't the server's fault, to be retried. */
export type ServerProofs = {
  prove(deploymentId: string, signal: AbortSignal): Promise<ServerProof>
}

export type ServerProof =
  /** `unplaced`: no runner was available. */
  | { healthy: false; reason: string; unplaced?: boolean }
  | { healthy: true; release(): Promise<void>; stop(): Promise<void> }

/** `ready` records the deployment as READY. Both return false if it was canceled or deleted. */
export async function proveServer(
  servers: ServerProofs,
  deploymentId: string,
  signal: AbortSignal,
  ready: () => Promise<boolean>,
): Promise<boolean> {
  const proof = await servers.prove(deploymentId, signal)
  if (!proof.healthy && proof.unplaced) throw new NoRunner(proof.reason)
  if (!proof.healthy) throw new BuildFailure('server_unhealthy', proof.reason, { step: 'run', access: null })
  if (signal.aborted) {
    await proof.stop()
    throw signal.reason
  }
  // If `ready` throws, the change may still be committed and visitors may arrive, unless it was refused.
  let isReady = true
  try {
    isReady = await ready()
  } catch (error) {
    isReady = !(error instanceof BuildFailure)
    throw error
  } finally {
    await (isReady ? proof.release() : proof.stop())
  }
  return isReady
}
