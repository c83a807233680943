// What a build may have to wait for, what its log says meanwhile, and how it ends when that takes too long.
import type { JobKinds } from '../../jobs/kinds.ts'
import type { FailureCode } from './failure.ts'

// A build of a platform that is full, or without a runner, waits this long.
export const longestWaitMs = 30 * 60_000

export type Lack = {
  /** Of the job: since when it is lacking. */
  field: Exclude<keyof JobKinds['build'], 'deploymentId'>
  waiting: string
  why: string
  code: FailureCode
  message: string
  longestWaitMs?: number
}

/** What the platform may lack. */
export const lacks = {
  disk: {
    field: 'noDiskSince',
    waiting: 'Waiting for room on the disk of the platform: the build begins again when there is some.',
    why: 'there is no room on the disk',
    code: 'platform_disk_full',
    message:
      'The platform has no room on its disk at present. Nothing is wrong with the project: deploy it again later.',
  },
  store: {
    field: 'noStoreSince',
    waiting: 'Waiting for the artifact store of the platform: the build begins again when it can be used.',
    why: 'the artifact store cannot be used',
    code: 'platform_storage_unavailable',
    message:
      'The artifact store of the platform cannot be used at present. Nothing is wrong with the project: deploy it again later.',
  },
  runner: {
    field: 'noRunnerSince',
    waiting: 'Waiting for a runner of the platform, which starts servers: the build begins again when there is one.',
    why: 'no runner takes the server',
    code: 'platform_runner_unavailable',
    message:
      'The platform has no runner that can start a server at present. Nothing is wrong with the project: deploy it again later.',
  },
} as const satisfies Record<string, Lack>

// Long enough for a repository host to restart. A build that waits for it takes no slot.
const longestOutageMs = 5 * 60_000

export const lackOfHost = (host: string): Lack => ({
  field: 'noHostSince',
  waiting: `We couldn't reach ${host}. We retry for five minutes.`,
  why: "the repository host can't be reached",
  code: 'repository_unreachable',
  message: `We couldn't reach ${host} for five minutes. Deploy again when it responds; if it does, check the repository of the project.`,
  longestWaitMs: longestOutageMs,
})
