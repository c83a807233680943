// The memory of a process by kind, and whether it grows.
import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import type { Probed } from './probe.ts'

export const mb = (bytes: number) => bytes / 2 ** 20

/** Queries the probe in the node under test. */
export function probe(socketPath: string, path = '/'): Promise<Probed> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath, path, timeout: 30_000 }, async (response) => {
      resolve(JSON.parse(Buffer.concat(await response.toArray()).toString()))
    })
    outgoing.on('timeout', () => outgoing.destroy(new Error('the probe does not answer')))
    outgoing.on('error', reject)
    outgoing.end()
  })
}

/** Includes the heaps of worker threads, which `memoryUsage` of the main thread doesn't count. */
export function nativeBytes({ rss, heapTotal, external }: NodeJS.MemoryUsage): number {
  return rss - heapTotal - external
}

/** All descendants of a process. */
export function descendants(of: number): { pid: number; name: string }[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const stat = readQuietly(`/proc/${name}/stat`)
      const end = stat.lastIndexOf(')')
      if (end < 0) return []
      return [
        {
          pid: Number(name),
          name: stat.slice(stat.indexOf('(') + 1, end),
          parent: Number(stat.slice(end + 4).split(' ')[0]),
        },
      ]
    })
  const found = new Set([of])
  for (let before = 0; before < found.size; ) {
    before = found.size
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid)
  }
  return all.filter(({ pid }) => pid !== of && found.has(pid))
}

/** Shared pages are counted once, proportionally. */
export function proportionalBytes(pids: number[]): number {
  const kilobytes = pids.map((pid) => Number(/^Pss:\s+(\d+)/m.exec(readQuietly(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0))
  return kilobytes.reduce((sum, kb) => sum + kb, 0) * 1024
}

function readQuietly(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // The process exited meanwhile.
    return ''
  }
}

/** The slope of the least-squares line. */
export function slope(points: { x: number; y: number }[]): number {
  const mean = (of: 'x' | 'y') => points.reduce((sum, point) => sum + point[of], 0) / points.length
  const [x, y] = [mean('x'), mean('y')]
  const below = points.reduce((sum, point) => sum + (point.x - x) ** 2, 0)
  return below === 0 ? 0 : points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0) / below
}
