// Waiting for the end of a connection.
import type { EventEmitter } from 'node:events'

/** The end of a connection, by a close or by a reset; `once` of node:events would reject on a reset. */
export function closed(connection: EventEmitter): Promise<void> {
  connection.on('error', () => {})
  return new Promise((resolve) => connection.once('close', () => resolve()))
}
