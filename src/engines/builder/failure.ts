// A build failure caused by the project or its repository, not by the platform: ends in ERROR, never retried.

import type { failureCodes } from '../../schemas/deployments.ts'

export type FailureCode = (typeof failureCodes)[number]

export class BuildFailure extends Error {
  readonly code: FailureCode

  constructor(code: FailureCode, message: string) {
    super(message)
    this.code = code
  }
}
