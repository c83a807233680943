// Decides which requests are upgraded to another protocol.
import type { IncomingMessage } from 'node:http'

/**
 * Only WebSockets are; other upgrades (curl offers h2c) are ignored. So is one that arrives before the response to an
 * earlier request on the connection: Node would hand the connection over, and that response would never end.
 */
export function isUpgrade({ headers, socket }: IncomingMessage): boolean {
  // Node has no public property for a connection's current response.
  const { _httpMessage: earlier } = socket as { _httpMessage?: unknown }
  return !earlier && /^websocket$/i.test(headers.upgrade ?? '')
}
