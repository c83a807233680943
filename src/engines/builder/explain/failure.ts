// Build failures caused by the project or its repository, which end in ERROR, and failures that are retried.

import { LostError } from '../../../jobs/worker.ts'
import type { failureCodes } from '../../../schemas/deployments.ts'
import type { NetworkAccess } from './unreachable.ts'

export type FailureCode = (typeof failureCodes)[number]

/** Where to find the cause: the log of a step, and for a command, its network access. */
type Output = { step: string; access: NetworkAccess | null }

/** Never retried. */
export class BuildFailure extends Error {
  readonly code: FailureCode
  readonly output: Output | null

  /** With `output`, the message is a clause that the printed error completes. */
  constructor(code: FailureCode, message: string, output: Output | null = null) {
    super(message)
    this.code = code
    this.output = output
  }
}

/** The repository host can't be reached right now, so the build is retried for some minutes. */
export class HostUnreachable extends Error {
  readonly host: string

  constructor(host: string) {
    super(`${host} can't be reached`)
    this.host = host
  }
}

/** SIGKILL ended a command, sent by the command or the machine: retried once, then counted as the project's failure. */
export class CommandKilled extends Error {
  readonly failure: BuildFailure

  constructor(message: string, failure: BuildFailure) {
    super(message)
    this.failure = failure
  }
}

/** Why a build was given up. */
export function reasonOf(error: Error): Pick<BuildFailure, 'code' | 'message'> {
  if (error instanceof CommandKilled) return { code: error.failure.code, message: error.failure.message }
  if (!(error instanceof LostError)) {
    const message = 'The build failed twice on our side. Deploy again, or ask support to retry it.'
    return { code: 'internal_error', message }
  }
  const message = `We stopped retrying this build: ${error.message}, and other builds weren't lost. It may need more memory than a worker has. Deploy again, or ask support to retry it.`
  return { code: 'worker_lost', message }
}
