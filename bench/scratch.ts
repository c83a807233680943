// What a benchmark works in: a directory of its own with a PostgreSQL, and everything it started, closed in reverse.
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/embedded-postgres/index.ts'

export type Scratch = {
  directory: string
  postgres: EmbeddedPostgres
  /** Called at the end, the last one first. */
  atEnd(close: () => unknown): void
}

/** Ends with a line that tells how busy the machine was before. */
export async function inScratch(work: (scratch: Scratch) => Promise<void>): Promise<void> {
  const [loadBefore] = loadavg()
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  // PostgreSQL, sandboxes and peers run as other users under root and must get through.
  await chmod(directory, 0o711)
  const closers: (() => unknown)[] = [() => rm(directory, { recursive: true, force: true })]
  try {
    const postgres = await startEmbeddedPostgres({ directory: join(directory, 'postgres') })
    closers.push(() => postgres.stop())
    await work({ directory, postgres, atEnd: (close) => void closers.push(close) })
    console.log(`\nload average before the start ${loadBefore!.toFixed(1)} on ${availableParallelism()} processors`)
  } finally {
    for (const close of closers.reverse()) await close()
  }
}
