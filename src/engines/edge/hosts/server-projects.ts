// What the edge needs from the engine that runs server projects. The edge knows no processes, sandboxes or nodes.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Target } from './targets.ts'

/** `answered` is called with the status of the answer. */
export type UpgradeTarget = Target & { answered?(status: number): void }

export type ServerProjects = {
  /**
   * Resolves when so many instances of the deployment are healthy, or those of them that start. Rejects if none does.
   */
  ready(deploymentId: string, instances: number): Promise<void>
  /** Answers the request. If no instance runs, one is asked for and the request waits for it. */
  proxy(request: IncomingMessage, response: ServerResponse, target: Target): void
  /** For the event `upgrade` of an HTTP server. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, target: UpgradeTarget): void
  /** Another deployment has taken over. */
  retire(deploymentId: string): Promise<void>
  /** The deployment is barred: requests do not wait for it any more. */
  halt(deploymentId: string): Promise<void>
  close(): Promise<void>
}
