// Shared by all groups of benchmarks: results, the scratch directory, and the duration of measurements.
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/embedded-postgres/index.ts'
import type { Program } from './programs.ts'

/** A row of docs/speed.md: what is measured, and what it is compared with. */
export type Figure = { what: string; against: string; needs?: Program[] }

export type Group<Name extends string = string> = {
  about: string
  figures: Record<Name, Figure>
  run(bench: Bench<Name>): Promise<void>
}

export type Bench<Name extends string = string> = Scratch & {
  /** The names of the parts to run, or parts of them; empty means all. */
  only: string
  smoke: boolean
  rounds(usual: number): number
  seconds(usual: number): number
  /** A number of rows, files or repetitions. */
  size(usual: number, smoke: number): number
  record(name: Name, measured: number | string): void
}

export type Scratch = {
  directory: string
  /** Durable by default, except in a smoke run. */
  startPostgres(durable?: boolean): Promise<EmbeddedPostgres>
  /** Called at the end, in reverse order. */
  atEnd(close: () => unknown): void
}

export type Options = { only: string; smoke: boolean; rounds: number | null; seconds: number | null }

/** Runs a group; returns its results. */
export async function runGroup(group: Group, options: Options): Promise<Map<string, string>> {
  const { only, smoke } = options
  const measured = new Map<string, string>()
  await inScratch(smoke, (scratch) =>
    group.run({
      ...scratch,
      only,
      smoke,
      rounds: (usual) => options.rounds ?? (smoke ? 1 : usual),
      seconds: (usual) => options.seconds ?? (smoke ? 1 : usual),
      size: (usual, small) => (smoke ? small : usual),
      record: (name, value) => measured.set(name, typeof value === 'number' ? value.toFixed(2) : value),
    }),
  )
  return measured
}

/** Ends with a line that says how busy the machine was before. */
async function inScratch(smoke: boolean, work: (scratch: Scratch) => Promise<void>): Promise<void> {
  const [loadBefore] = loadavg()
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  // As root, PostgreSQL, sandboxes and peers run as other users and need access.
  await chmod(directory, 0o711)
  const closers: (() => unknown)[] = [() => rm(directory, { recursive: true, force: true })]
  const atEnd = (close: () => unknown) => void closers.push(close)
  const startPostgres = async (durable = !smoke) => {
    const postgres = await startEmbeddedPostgres({ directory: join(directory, 'postgres'), durable })
    atEnd(() => postgres.stop())
    return postgres
  }
  try {
    await work({ directory, startPostgres, atEnd })
    console.log(`\nload average before the start ${loadBefore!.toFixed(1)} on ${availableParallelism()} processors`)
  } finally {
    for (const close of closers.reverse()) await close()
  }
}
