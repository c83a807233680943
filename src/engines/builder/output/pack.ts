// Runs the packer in a sandbox with a read-only tree and no network.
import type { Readable } from 'node:stream'
import { onAbort } from '../../../platform/abort.ts'
import { TruncatedStream } from '../../../platform/files/byte-reader.ts'
import { type Exit, type Sandbox, SandboxError } from '../../../sandbox/sandbox.ts'
import { BuildFailure } from '../explain/failure.ts'
import { type Limits, type Packed, readPacked } from '../tree/entries.ts'
import { PACKER, type PackerPlan } from '../tree/packer.ts'

export type PackerOptions = { sandbox: Sandbox; tree: string; timeoutMs: number; signal: AbortSignal }

export type Packer = {
  /** Passes the packed output to `receive`; an error there, or an early return, ends the packer. Called once. */
  pack<T>(plan: PackerPlan, limits: Limits, receive: (packed: Packed) => Promise<T>): Promise<T>
  close(): Promise<void>
}

const memoryMb = 512
const processes = 64

/** Opens while the build still runs, which saves 80 ms; it reads nothing before it gets its plan. */
export function openPacker({ sandbox, tree, timeoutMs, signal }: PackerOptions): Packer {
  const input = Promise.withResolvers<string>()
  const stdout = Promise.withResolvers<Readable>()
  let errorOutput = ''
  const process = sandbox.run({
    argv: ['node', '-e', PACKER],
    input: input.promise,
    workTree: tree,
    writable: false,
    environment: { NODE_DISABLE_COMPILE_CACHE: '1' },
    limits: { memoryMb, processes, timeoutMs },
    onOutput(_stream, chunk) {
      errorOutput = (errorOutput + chunk).slice(-1000)
    },
    readStdout: stdout.resolve,
  })
  const unlisten = onAbort(signal, process.kill)
  const { exited } = process
  // A packer that was never started has no output to read.
  exited.catch(stdout.reject)
  stdout.promise.catch(() => {})
  async function close(): Promise<void> {
    unlisten()
    // Unread output would keep the sandbox from ending.
    void stdout.promise.then((stream) => stream.destroy()).catch(() => {})
    await process.kill()
  }
  return {
    async pack(plan, limits, receive) {
      input.resolve(JSON.stringify(plan))
      try {
        // The last entry marks the end, so there is no need to wait for the exit of the sandbox.
        return await receive(await readPacked(await stdout.promise, limits))
      } catch (error) {
        await close()
        signal.throwIfAborted()
        if (!(error instanceof TruncatedStream)) throw error
        throw ended(await exited, errorOutput, timeoutMs)
      }
    },
    close,
  }
}

/** The packer reads an untrusted tree, so its failure is the fault of the tree. */
function ended(exit: Exit, errorOutput: string, timeoutMs: number): Error {
  if (exit.reason === 'timeout') {
    return new BuildFailure(
      'output_too_large',
      `The output could not be read within ${Math.round(timeoutMs / 1000)} s.`,
    )
  }
  if (exit.reason === 'memory') return new BuildFailure('output_too_large', 'The output has too many files to be read.')
  return new SandboxError(`The output could not be read: ${errorOutput.trim() || JSON.stringify(exit)}`)
}
