// Waits for a connection to close.
import type { EventEmitter } from 'node:events'

/** Resolves when a connection is closed or reset; `once` of node:events would reject on a reset. */
export function closed(connection: EventEmitter): Promise<void> {
  connection.on('error', () => {})
  return new Promise((resolve) => connection.once('close', () => resolve()))
}
