// Failures of a build that are the project's or its repository's, not the platform's: they end it in ERROR.

import { LostError } from '../../../jobs/worker.ts'
import type { failureCodes } from '../../../schemas/deployments.ts'
import type { Reach } from './unreachable.ts'

export type FailureCode = (typeof failureCodes)[number]

/** What says why: the log of a step; and for a command, which hosts it could reach. */
type Output = { step: string; reach: Reach | null }

/** Never retried. */
export class BuildFailure extends Error {
  readonly code: FailureCode
  readonly output: Output | null

  /** With `output`, the message is a clause, which what was printed completes. */
  constructor(code: FailureCode, message: string, output: Output | null = null) {
    super(message)
    this.code = code
    this.output = output
  }
}

/** The host of a repository can't be reached now: the build is put back for some minutes. The message names the host. */
export class HostUnreachable extends Error {
  readonly host: string

  constructor(host: string) {
    super(`${host} can't be reached`)
    this.host = host
  }
}

/** A command got a SIGKILL, from itself or from somebody on the machine: retried once, and then the project's failure. */
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
