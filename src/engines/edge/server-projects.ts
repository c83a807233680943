// What the edge needs from the engine that runs server projects. The edge knows no processes or sandboxes.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Target } from './targets.ts'

export type ServerProjects = {
  /** Starts the deployment's server if it does not run; resolves when it is healthy, and it stays up from then on. */
  ready(deploymentId: string): Promise<void>
  /** Marks the server as production's: it is restarted however often it fails. */
  keep(deploymentId: string): void
  /** Answers the request. If the server does not run, it is started and the request waits for it. */
  proxy(request: IncomingMessage, response: ServerResponse, target: Target): void
  /** For the event `upgrade` of an HTTP server. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, target: Target): void
  /** The server is no longer kept up: it is stopped when its requests are done. */
  retire(deploymentId: string): Promise<void>
  /** The server is stopped now, and its requests and WebSockets with it. */
  halt(deploymentId: string): Promise<void>
  close(): Promise<void>
}
