// Starts this process anew with settings that V8 and the C library read only at their own start, before any thread exists.

/*
 * What a long-lived server pays for with memory that it never gives back, by default:
 * - V8 doubles the young generation under load up to 2 × 64 MB and keeps its pages, also in each thread.
 * - glibc makes up to eight heaps for each processor, keeps what is freed in them, and raises the size from which a
 *   buffer is given back at once up to 32 MB.
 * `npm run soak` shows both.
 */

// Smaller buffers are reused: the edge would map and unmap one for many a page.
export const allocator = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '1048576', MALLOC_TRIM_THRESHOLD_: '4194304' }
const youngGeneration = '--max-semi-space-size'
export const youngGenerationFlag = `${youngGeneration}=16`

/** Keeps the process id and the standard streams. What the operator has set stays; other systems have other allocators. */
export function boundMemory(): void {
  const flags = `${process.execArgv.join(' ')} ${process.env.NODE_OPTIONS ?? ''}`
  const isSet = flags.includes(youngGeneration) && Object.keys(allocator).every((name) => name in process.env)
  // A parent that talks to this process would lose its channel.
  if (isSet || process.platform !== 'linux' || process.send !== undefined || process.execve === undefined) return
  const young = flags.includes(youngGeneration) ? [] : [youngGenerationFlag]
  const command = [process.execPath, ...young, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(process.execPath, command, { ...allocator, ...process.env })
}
