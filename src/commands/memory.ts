// Starts this process anew with settings that V8 and the C library read only at their own start, before any thread exists.
import { availableParallelism } from 'node:os'

/*
 * What a long-lived server pays for with memory that it never gives back, by default:
 * - V8 doubles the young generation under load up to 2 × 64 MB and keeps its pages, also in each thread.
 * - V8 lets the old generation grow to several times of what is alive, if much is allocated.
 * - glibc makes up to eight heaps for each processor, keeps what is freed in them, and raises the size from which a
 *   buffer is given back at once up to 32 MB.
 * `npm run soak` shows all of it.
 *
 * And what a nameserver pays for with the time of its answers: V8 marks the old generation in threads. Where there are but
 * two processors, nothing else runs for a tenth of a second; in steps of the main thread it takes longer, and others hardly
 * wait. `npm run bench -- dns --only signed-changes` shows it. The other roles allocate more than such steps keep up with.
 */

// Smaller buffers are reused: the edge would map and unmap one for many a page.
export const allocator = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '1048576', MALLOC_TRIM_THRESHOLD_: '4194304' }
export const heapFlags = ['--max-semi-space-size=16', '--heap-growing-percent=50']
const fewProcessors = 2
// What is alive in a process of all roles when it is ready. Collecting garbage on the way there took a tenth of a start.
const startFlag = '--initial-heap-size=64'

function heapFlagsFor(args: readonly string[]): string[] {
  if (!/(^| )--roles[ =]/.test(args.join(' '))) return [...heapFlags, startFlag]
  const isNameserver = /(^| )--roles[ =]nameserver( |$)/.test(args.join(' '))
  return isNameserver && availableParallelism() <= fewProcessors ? [...heapFlags, '--no-concurrent-marking'] : heapFlags
}

const nameOf = (flag: string) => flag.replace(/^--(no-)?/, '').replace(/=.*/, '')

/**
 * Keeps the process id and the standard streams. What the operator has set stays; other systems have other allocators.
 * `args` is the command line of `serve`.
 */
export function boundMemory(args: readonly string[]): void {
  const set = `${process.execArgv.join(' ')} ${process.env.NODE_OPTIONS ?? ''}`
  const flags = heapFlagsFor(args).filter((flag) => !set.includes(nameOf(flag)))
  const isSet = flags.length === 0 && Object.keys(allocator).every((name) => name in process.env)
  // A parent that talks to this process would lose its channel.
  if (isSet || process.platform !== 'linux' || process.send !== undefined || process.execve === undefined) return
  const command = [process.execPath, ...flags, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(process.execPath, command, { ...allocator, ...process.env })
}
