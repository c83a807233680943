// Which requests leave HTTP for another protocol.
import type { IncomingMessage } from 'node:http'

/**
 * Only WebSockets: other upgrades (curl offers h2c) are ignored and answered as plain HTTP. So is one that was sent
 * before the answer to an earlier request of the connection: Node would hand the connection over, and that answer
 * would never end.
 */
export function isUpgrade({ headers, socket }: IncomingMessage): boolean {
  // Node has no public property for the response that a connection is at.
  const { _httpMessage: earlier } = socket as { _httpMessage?: unknown }
  return !earlier && /^websocket$/i.test(headers.upgrade ?? '')
}
