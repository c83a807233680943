// Creates the sandbox for untrusted commands, with a driver that works on this machine.
import { openBubblewrap } from './bubblewrap.ts'
import type { SandboxOptions } from './options.ts'
import { type Sandbox, SandboxError } from './processes/command.ts'
import { openUnprotected } from './unprotected.ts'

export type { SandboxOptions } from './options.ts'
export * from './processes/command.ts'

/** `auto` uses bubblewrap if a test command runs in it. Otherwise it runs without protection and warns why. */
export async function createSandbox(mode: 'auto' | 'bubblewrap' | 'none', options: SandboxOptions): Promise<Sandbox> {
  if (mode === 'none') return openUnprotected(options, 'BUILD_SANDBOX is none.')
  try {
    return await openBubblewrap(options)
  } catch (error) {
    if (mode === 'bubblewrap') throw error
    if (!(error instanceof SandboxError)) throw error
    return openUnprotected(options, error.message)
  }
}
