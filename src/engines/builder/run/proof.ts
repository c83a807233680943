// The last step of a server project: it is READY after its server has answered; otherwise the server is stopped.
import { BuildFailure } from '../explain/failure.ts'

/** Nothing is wrong with the server, so the build is put back. */
export class NoRunner extends Error {}

/** The interface of the engine that runs servers. Rejects if a failure is not the server's own; that is retried. */
export type ServerProofs = {
  prove(deploymentId: string, signal: AbortSignal): Promise<ServerProof>
}

export type ServerProof =
  /** Unplaced: no runner has taken it. */
  | { healthy: false; reason: string; unplaced?: boolean }
  | { healthy: true; release(): Promise<void>; stop(): Promise<void> }

/** `ready` records the deployment as READY. Both return false if it was canceled or deleted meanwhile. */
export async function proveServer(
  servers: ServerProofs,
  deploymentId: string,
  signal: AbortSignal,
  ready: () => Promise<boolean>,
): Promise<boolean> {
  const proof = await servers.prove(deploymentId, signal)
  if (!proof.healthy && proof.unplaced) throw new NoRunner(proof.reason)
  if (!proof.healthy) throw new BuildFailure('server_unhealthy', proof.reason, { step: 'run', reach: null })
  if (signal.aborted) {
    await proof.stop()
    throw signal.reason
  }
  // If `ready` throws, the change may be committed all the same, and visitors may already come; not if it was refused.
  let taken = true
  try {
    taken = await ready()
  } catch (error) {
    taken = !(error instanceof BuildFailure)
    throw error
  } finally {
    await (taken ? proof.release() : proof.stop())
  }
  return taken
}
