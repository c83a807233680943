// Guards the platform's free disk space: builds start only above a reserve and are stopped well before it runs out.
import type { Logger } from 'pino'
import { Gauge, Registry } from 'prom-client'
import { freeBytes, isDiskFull } from '../../../platform/files/disk.ts'

/** The platform has no room for the build right now, through no fault of the build. */
export class DiskFull extends Error {
  override name = 'DiskFull'
}

export type DiskWatch = {
  /** Aborts when so little space is left that the database is at risk. */
  low: AbortSignal
  /** Whether a full disk caused this error. Must be called before the build's files are removed. */
  isCauseOf(error: unknown): Promise<boolean>
  stop(): void
}

export type Disk = {
  /** Whether a build may start. If not, calls `free` first. */
  hasRoom(free: (enough: () => Promise<boolean>) => Promise<void>): Promise<boolean>
  /** Whether this much can be written without using the reserve. */
  hasRoomFor(bytes: number): Promise<boolean>
  /** Watches the disk during one build. */
  watch(): DiskWatch
  /** A message if builds have to wait for space, else null. */
  readiness(): Promise<string | null>
}

const checkIntervalMs = 100
// Running builds may use most of the reserve, so that a build that fits isn't postponed for nothing.
const lowShare = 1 / 4

export type DiskOptions = { directory: string; reserveMb: number; log: Logger; registry?: Registry }

export function openDisk({ directory, reserveMb, log, registry = new Registry() }: DiskOptions): Disk {
  const reserveBytes = reserveMb * 1024 ** 2
  let isWarned = false
  // If the free space is unknown, for example before the directory exists, the disk doesn't count as full.
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
    if (enough === isWarned) {
      const figures = { freeMb: Math.floor(bytes / 1024 ** 2), reserveMb }
      if (enough) log.info(figures, 'there is room on the disk again: builds go on')
      else log.warn(figures, 'the disk of the data directory is nearly full: builds wait until there is room')
      isWarned = !enough
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
      const check = async () => {
        if ((await free()) < reserveBytes * lowShare) low.abort(new DiskFull('the disk of the platform is nearly full'))
      }
      const timer = setInterval(check, checkIntervalMs)
      return {
        low: low.signal,
        async isCauseOf(error) {
          await check()
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
