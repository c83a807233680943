// The interface between the edge and the engine that runs server projects.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Target } from './targets.ts'

/** `answered` receives the status of the response. */
export type UpgradeTarget = Target & { answered?(status: number): void }

export type ServerProjects = {
  /** Resolves when this many instances are healthy, or fewer if the others don't start. Rejects if none starts. */
  ready(deploymentId: string, instances: number): Promise<void>
  /** Responds to the request. If no instance runs, this requests one and waits for it. */
  proxy(request: IncomingMessage, response: ServerResponse, target: Target): void
  /** Handles the `upgrade` event of an HTTP server. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, target: UpgradeTarget): void
  /** Called when another deployment has taken over. */
  retire(deploymentId: string): Promise<void>
  /** Called when the deployment is barred, so that requests stop waiting for it. */
  halt(deploymentId: string): Promise<void>
  close(): Promise<void>
}
