// Runs the packer in a sandbox where the tree cannot be changed and nothing else can be reached.
import type { Readable } from 'node:stream'
import { type Exit, type Sandbox, SandboxError } from '../../sandbox/sandbox.ts'
import { CutShort } from './byte-reader.ts'
import { type Limits, type Packed, readPacked } from './entries.ts'
import { BuildFailure } from './failure.ts'
import { PACKER, type PackerPlan } from './packer.ts'

export type PackOptions = {
  sandbox: Sandbox
  tree: string
  plan: PackerPlan
  limits: Limits
  timeoutMs: number
  signal: AbortSignal
}

const memoryMb = 512
const processes = 64

/** Hands the packed output to `receive`; an error there, or an early return, ends the packer. */
export async function pack<T>(options: PackOptions, receive: (packed: Packed) => Promise<T>): Promise<T> {
  const { sandbox, tree, plan, limits, timeoutMs, signal } = options
  const stdout = Promise.withResolvers<Readable>()
  let complaint = ''
  const process = sandbox.run({
    argv: ['node', '-e', PACKER, JSON.stringify(plan)],
    workTree: tree,
    writable: false,
    environment: { NODE_DISABLE_COMPILE_CACHE: '1' },
    limits: { memoryMb, processes, timeoutMs },
    onOutput(_stream, chunk) {
      complaint = (complaint + chunk).slice(-1000)
    },
    readStdout: stdout.resolve,
  })
  const cancel = () => void process.kill()
  signal.addEventListener('abort', cancel)
  const exited = process.exited
  // A packer that was never started has no output to read.
  exited.catch(stdout.reject)
  try {
    // Its last entry says that it was all; nobody need wait for the end of an idle sandbox.
    return await receive(await readPacked(await stdout.promise, limits))
  } catch (error) {
    // What nobody reads any more would keep the sandbox from its end.
    void stdout.promise.then((stream) => stream.destroy()).catch(() => {})
    await process.kill()
    signal.throwIfAborted()
    if (!(error instanceof CutShort)) throw error
    throw ended(await exited, complaint, timeoutMs)
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** It reads a tree that anybody made: what ends it is the tree's doing. */
function ended(exit: Exit, complaint: string, timeoutMs: number): Error {
  if (exit.reason === 'timeout') {
    return new BuildFailure(
      'output_too_large',
      `The output could not be read within ${Math.round(timeoutMs / 1000)} s.`,
    )
  }
  if (exit.reason === 'memory') return new BuildFailure('output_too_large', 'The output has too many files to be read.')
  return new SandboxError(`The output could not be read: ${complaint.trim() || JSON.stringify(exit)}`)
}
