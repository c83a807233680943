// All kinds of jobs with their payloads. roles/worker.ts has exactly one handler for each.

export type JobKinds = {
  /** Build a deployment and publish it. */
  build: {
    deploymentId: string
    /** Since when it waits for room on the disk, for the artifact store, for a runner, or for the repository host. */
    noDiskSince?: string
    noStoreSince?: string
    noRunnerSince?: string
    noHostSince?: string
  }
  /** Remove the files of deleted deployments from disk, and the caches of a deleted project. */
  reap: { deploymentIds: string[]; projectId?: string }
  /**
   * Write a damaged file of the store anew by building one of the deployments that have it once more; without a hash,
   * the manifest of the deployment.
   */
  repair: { hash?: string; deploymentIds: string[] }
  /** Check by DNS who owns a domain. */
  verify: { domainId: string }
  /** Get or renew the certificate of a domain, or one of the platform's own. */
  issue: { domainId: string } | { platform: 'deployments' | 'api' }
  /** Post the state of a deployment to the repository host. */
  status: { deploymentId: string }
  /** Look up the addresses of the ALIAS records of a zone that lead out of it. Queued by the triggers of dns_record. */
  alias: { domainId: string }
  /** Look whether the primary of a zone has a new version, and take it over. */
  follow: { domainId: string }
  /** Delete what a large zone, or a key that signed one, has left. Queued by the triggers `zone_purge`. */
  purge: { ownerId: string }
  /** Ask the parent of a signed zone for its DS records, and take the next step. */
  dnssec: { domainId: string }
  /** Find out who is told of an event by mail, and queue a mail to each. Queued by the trigger `event_mail`. */
  notify: { eventId: string }
  /** Call a path of production that is due. */
  cron: { cronId: string }
  /** Send a mail to its recipient. */
  mail: { recipient: string; about: string }
}

export type JobKind = keyof JobKinds

/** All of them; a kind that is missing here does not compile. */
export const jobKinds = Object.keys({
  build: true,
  reap: true,
  verify: true,
  issue: true,
  status: true,
  repair: true,
  alias: true,
  follow: true,
  purge: true,
  dnssec: true,
  notify: true,
  mail: true,
  cron: true,
} satisfies Record<JobKind, true>) as JobKind[]
