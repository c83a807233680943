// Keys of TLS session tickets, shared by all servers and worker processes of this machine, so that each can resume any
// session.
import { randomBytes } from 'node:crypto'

export type TicketKeys = {
  /** Calls `use` with the current key, and with each one that replaces it. Returns a function that stops that. */
  follow(use: (key: Buffer) => void): () => void
  replace(key: Buffer): void
  close(): void
}

// A key decrypts every TLS 1.2 session resumed with it, so keys are rotated.
const rotationMs = 12 * 60 * 60_000

/** Rotates its own key, unless the caller supplies one and replaces it. */
export function createTicketKeys(given?: Buffer): TicketKeys {
  const users = new Set<(key: Buffer) => void>()
  let current = given ?? randomBytes(48)
  function replace(key: Buffer): void {
    current = key
    for (const use of users) use(key)
  }
  const timer = given ? undefined : setInterval(() => replace(randomBytes(48)), rotationMs).unref()
  return {
    follow(use) {
      users.add(use)
      use(current)
      return () => void users.delete(use)
    },
    replace,
    close: () => clearInterval(timer),
  }
}
