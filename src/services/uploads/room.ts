// Room on the disk for bodies on their way: what uploads in progress have announced counts before they write it.

import { Fault } from '../../platform/errors.ts'
import { freeBytes } from '../../platform/files/disk.ts'

export type RoomOptions = {
  directory: string
  /** What is left free for the platform itself. */
  reserveBytes: number
  freeBytes?: typeof freeBytes
}

/** What one upload may write. */
export type Hold = {
  /** Refuses to write so many bytes more if the disk has no room for them. */
  announce(bytes: number): Promise<void>
  /** Must be called before each write. Checks the disk again every few MiB, since others write to it, too. */
  take(bytes: number): Promise<void>
  release(): void
}

export type Room = { hold(): Hold }

/** A body of unknown length is announced in blocks of this size. */
const blockBytes = 4 << 20

export const unavailable = (cause: unknown) =>
  new Fault('overloaded', 'The platform cannot store anything at the moment. Nothing was stored.', {
    cause,
    retryAfterSeconds: 10,
  })

export function createRoom({ directory, reserveBytes, freeBytes: free = freeBytes }: RoomOptions): Room {
  // Announced by all uploads and not yet written.
  let pending = 0

  async function check(): Promise<void> {
    const found = await free(directory)
    if (found - pending < reserveBytes) throw unavailable(new Error('the disk has no room'))
  }

  return {
    hold() {
      let left = 0
      let unchecked = 0
      const change = (bytes: number) => {
        left += bytes
        pending += bytes
      }
      async function announce(bytes: number): Promise<void> {
        change(bytes)
        await check().catch((error) => {
          change(-bytes)
          throw error
        })
        unchecked = 0
      }
      return {
        announce,
        async take(bytes) {
          if (bytes > left) await announce(Math.max(bytes - left, blockBytes))
          else if (unchecked >= blockBytes) await announce(0)
          unchecked += bytes
          change(-bytes)
        },
        release: () => change(-left),
      }
    },
  }
}

const rooms = new Map<string, Room>()

/** The same for all who write to the directory. */
export function roomOf(options: RoomOptions): Room {
  const room = rooms.get(options.directory) ?? createRoom(options)
  rooms.set(options.directory, room)
  return room
}
