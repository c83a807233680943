// The last step of a server project: it is READY after it has answered, and one that does not leaves nothing running.
import { BuildFailure } from './failure.ts'

/** What the builder asks of whoever runs servers. A fault that is not the server's own is a rejection, and is retried. */
export type ServerProofs = {
  prove(deploymentId: string, signal: AbortSignal): Promise<ServerProof>
}

export type ServerProof =
  | { healthy: false; reason: string }
  | { healthy: true; release(): Promise<void>; stop(): Promise<void> }

/** `ready` records the deployment as READY; false, as the answer, if it was canceled or deleted meanwhile. */
export async function proveServer(
  servers: ServerProofs,
  deploymentId: string,
  signal: AbortSignal,
  ready: () => Promise<boolean>,
): Promise<boolean> {
  const proof = await servers.prove(deploymentId, signal)
  if (!proof.healthy) throw new BuildFailure('server_unhealthy', proof.reason)
  if (signal.aborted) {
    await proof.stop()
    throw signal.reason
  }
  // Where the database does not say whether it took the change, visitors may have it already.
  let taken = true
  try {
    taken = await ready()
  } finally {
    await (taken ? proof.release() : proof.stop())
  }
  return taken
}
