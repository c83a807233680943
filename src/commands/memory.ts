// Restarts this process with settings that V8 and the C library only read at startup, before any thread exists.
import { availableParallelism } from 'node:os'

/*
 * These defaults cost a long-lived server memory that it never gives back:
 * - V8 doubles the young generation under load up to 2 × 64 MB and keeps its pages, in each thread too.
 * - V8 lets the old generation grow to several times the live heap if much is allocated.
 * - glibc creates up to eight heaps per processor, keeps freed memory in them, and raises the size from which a
 *   buffer is returned at once up to 32 MB.
 * `npm run soak` shows all of it.
 *
 * And this default delays a nameserver's answers: V8 marks the old generation in threads. With only
 * two processors, nothing else runs for a tenth of a second; incremental marking on the main thread takes longer, but
 * queries hardly wait. `npm run bench -- dns --only signed-changes` shows it. Other roles allocate too fast for that.
 */

// Smaller buffers are reused: the edge would otherwise map and unmap one for many pages.
export const allocator = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '1048576', MALLOC_TRIM_THRESHOLD_: '4194304' }
export const heapFlags = ['--max-semi-space-size=16', '--heap-growing-percent=50']
const fewProcessors = 2
// The live heap of a process with all roles once it is ready. Collecting garbage on the way there took a tenth of
// startup.
const startFlag = '--initial-heap-size=64'

function heapFlagsFor(args: readonly string[]): string[] {
  if (!/(^| )--roles[ =]/.test(args.join(' '))) return [...heapFlags, startFlag]
  const isNameserver = /(^| )--roles[ =]nameserver( |$)/.test(args.join(' '))
  return isNameserver && availableParallelism() <= fewProcessors ? [...heapFlags, '--no-concurrent-marking'] : heapFlags
}

const nameOf = (flag: string) => flag.replace(/^--(no-)?/, '').replace(/=.*/, '')

/**
 * Preserves the process id and the standard streams. Settings of the operator win; other systems have other
 * allocators. `args` is the command line of `serve`.
 */
export function boundMemory(args: readonly string[]): void {
  const set = `${process.execArgv.join(' ')} ${process.env.NODE_OPTIONS ?? ''}`
  const flags = heapFlagsFor(args).filter((flag) => !set.includes(nameOf(flag)))
  const isSet = flags.length === 0 && Object.keys(allocator).every((name) => name in process.env)
  // Otherwise a parent that talks to this process would lose its channel.
  if (isSet || process.platform !== 'linux' || process.send !== undefined || process.execve === undefined) return
  const command = [process.execPath, ...flags, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(process.execPath, command, { ...allocator, ...process.env })
}
