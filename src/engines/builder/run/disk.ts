// The free disk of the platform: no build starts without the reserve, and none goes on until nothing is left.
import type { Logger } from 'pino'
import { Gauge, Registry } from 'prom-client'
import { freeBytes, isDiskFull } from '../../../platform/files/disk.ts'

/** The platform has no room for this build at present; that is not the fault of the build. */
export class DiskFull extends Error {
  override name = 'DiskFull'
}

export type DiskWatch = {
  /** Aborts when so little is left that the database would suffer soon. */
  low: AbortSignal
  /** Whether a build that ended with this error ended because the platform's disk is full. To be asked before its files are removed. */
  isCauseOf(error: unknown): Promise<boolean>
  stop(): void
}

export type Disk = {
  /** Whether a build may start. Otherwise `free` is called as long as it frees something. */
  hasRoom(free: (enough: () => Promise<boolean>) => Promise<void>): Promise<boolean>
  /** Whether so much can be written without taking from the reserve. */
  hasRoomFor(bytes: number): Promise<boolean>
  /** For the time of one build. */
  watch(): DiskWatch
  /** A sentence if builds have to wait for room. */
  readiness(): Promise<string | null>
}

const watchEveryMs = 100
// A running build may use most of the reserve, so that one that fits in is not put back for nothing.
const lowShare = 1 / 4

export type DiskOptions = { directory: string; reserveMb: number; log: Logger; registry?: Registry }

export function openDisk({ directory, reserveMb, log, registry = new Registry() }: DiskOptions): Disk {
  const reserveBytes = reserveMb * 1024 ** 2
  let warned = false
  // A disk that cannot be asked, for example before its directory is made, is not known to be full.
  const free = () => freeBytes(directory).catch(() => Number.POSITIVE_INFINITY)
  new Gauge({
    name: 'berth_disk_free_bytes',
    help: 'Free space of the disk that has the data directory.',
    registers: [registry],
    async collect() {
      this.set(await free())
    },
  })
  new Gauge({
    name: 'berth_disk_reserve_bytes',
    help: 'Free space below which no build starts.',
    registers: [registry],
  }).set(reserveBytes)

  async function isEnough(): Promise<boolean> {
    const bytes = await free()
    const enough = bytes >= reserveBytes
    if (enough === warned) {
      const figures = { freeMb: Math.floor(bytes / 1024 ** 2), reserveMb }
      if (enough) log.info(figures, 'there is room on the disk again: builds go on')
      else log.warn(figures, 'the disk of the data directory is nearly full: builds wait until there is room')
      warned = !enough
    }
    return enough
  }

  return {
    async hasRoom(makeRoom) {
      if ((await free()) >= reserveBytes) return isEnough()
      await makeRoom(async () => (await free()) >= reserveBytes)
      return isEnough()
    },
    hasRoomFor: async (bytes) => (await free()) - bytes >= reserveBytes,
    watch() {
      const low = new AbortController()
      const look = async () => {
        if ((await free()) < reserveBytes * lowShare) low.abort(new DiskFull('the disk of the platform is nearly full'))
      }
      const timer = setInterval(look, watchEveryMs)
      return {
        low: low.signal,
        async isCauseOf(error) {
          await look()
          return low.signal.aborted || isDiskFull(error) || error instanceof DiskFull
        },
        stop: () => clearInterval(timer),
      }
    },
    async readiness() {
      return (await isEnough()) ? null : 'The disk of the data directory is nearly full, so that builds wait.'
    },
  }
}
