// Disk space for uploads in progress: reserved bytes count as used before they are written.

import { Fault } from '../../platform/errors.ts'
import { freeBytes } from '../../platform/files/disk.ts'

export type DiskSpaceOptions = {
  directory: string
  /** Bytes that stay free for the platform itself. */
  reserveBytes: number
  freeBytes?: typeof freeBytes
}

/** The disk space of one upload. */
export type Reservation = {
  /** Reserves more bytes. Throws if the disk has no space for them. */
  reserve(bytes: number): Promise<void>
  /** Must be called before each write. Checks the disk again every few MiB, because others write to it too. */
  use(bytes: number): Promise<void>
  release(): void
}

export type DiskSpace = { open(): Reservation }

/** Space for a body of unknown length is reserved in blocks of this size. */
const blockBytes = 4 << 20

export const unavailable = (cause: unknown) =>
  new Fault('overloaded', 'The platform cannot store anything at the moment. Nothing was stored.', {
    cause,
    retryAfterSeconds: 10,
  })

export function createDiskSpace({ directory, reserveBytes, freeBytes: free = freeBytes }: DiskSpaceOptions): DiskSpace {
  // Reserved by all uploads and not yet written.
  let pending = 0

  async function check(): Promise<void> {
    const available = await free(directory)
    if (available - pending < reserveBytes) throw unavailable(new Error('the disk is full'))
  }

  return {
    open() {
      let left = 0
      let unchecked = 0
      const change = (bytes: number) => {
        left += bytes
        pending += bytes
      }
      async function reserve(bytes: number): Promise<void> {
        change(bytes)
        await check().catch((error) => {
          change(-bytes)
          throw error
        })
        unchecked = 0
      }
      return {
        reserve,
        async use(bytes) {
          if (bytes > left) await reserve(Math.max(bytes - left, blockBytes))
          else if (unchecked >= blockBytes) await reserve(0)
          unchecked += bytes
          change(-bytes)
        },
        release: () => change(-left),
      }
    },
  }
}

const spaces = new Map<string, DiskSpace>()

/** One instance per directory, shared by everything that writes to it. */
export function diskSpaceOf(options: DiskSpaceOptions): DiskSpace {
  const space = spaces.get(options.directory) ?? createDiskSpace(options)
  spaces.set(options.directory, space)
  return space
}
