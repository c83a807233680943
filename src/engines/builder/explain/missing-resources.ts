// The resources that a build may have to wait for, with the texts for its log and for giving up.
import type { JobKinds } from '../../../jobs/kinds.ts'
import type { FailureCode } from './failure.ts'

// How long a build waits for disk space, the store or a runner.
export const maxWaitMs = 30 * 60_000

export type MissingResource = {
  /** The job's field with the time since when the resource is missing. */
  field: Exclude<keyof JobKinds['build'], 'deploymentId'>
  waiting: string
  why: string
  code: FailureCode
  message: string
  maxWaitMs?: number
}

export const missingResources = {
  disk: {
    field: 'noDiskSince',
    waiting: 'Waiting for free disk space on the platform: the build restarts when there is some.',
    why: 'there is no free disk space',
    code: 'platform_disk_full',
    message: 'The platform is out of disk space. Nothing is wrong with the project: deploy it again later.',
  },
  store: {
    field: 'noStoreSince',
    waiting: 'Waiting for the platform’s artifact store: the build restarts when it is available.',
    why: 'the artifact store is unavailable',
    code: 'platform_storage_unavailable',
    message: 'The platform’s artifact store is unavailable. Nothing is wrong with the project: deploy it again later.',
  },
  runner: {
    field: 'noRunnerSince',
    waiting: 'Waiting for a runner to start the server: the build restarts when one is available.',
    why: 'no runner is available',
    code: 'platform_runner_unavailable',
    message:
      'The platform has no runner available to start the server. Nothing is wrong with the project: deploy it again later.',
  },
} as const satisfies Record<string, MissingResource>

// Long enough for a repository host to restart. A waiting build takes no slot.
const maxOutageMs = 5 * 60_000

export const missingHost = (host: string): MissingResource => ({
  field: 'noHostSince',
  waiting: `We couldn't reach ${host}. We retry for five minutes.`,
  why: "the repository host can't be reached",
  code: 'repository_unreachable',
  message: `We couldn't reach ${host} for five minutes. Deploy again when it responds. If it does, check the project’s repository.`,
  maxWaitMs: maxOutageMs,
})
