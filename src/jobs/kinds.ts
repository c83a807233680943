// All kinds of jobs with their payloads. roles/worker.ts has exactly one handler for each.

export type JobKinds = {
  /** Build a deployment and publish it. */
  build: {
    deploymentId: string
    /** Since when it has waited for disk space, the artifact store, a runner or the repository host. */
    noDiskSince?: string
    noStoreSince?: string
    noRunnerSince?: string
    noHostSince?: string
  }
  /** Delete the files of deleted deployments, and the caches of a deleted project. */
  reap: { deploymentIds: string[]; projectId?: string }
  /**
   * Replace a damaged file of the store by rebuilding a deployment that contains it; without a hash, the deployment's
   * manifest.
   */
  repair: { hash?: string; deploymentIds: string[] }
  /** Check over DNS who owns a domain. */
  verify: { domainId: string }
  /** Get or renew the certificate of a domain, or one of the platform's own. */
  issue: { domainId: string } | { platform: 'deployments' | 'api' }
  /** Post the state of a deployment to the repository host. */
  status: { deploymentId: string }
  /** Look up the addresses of a zone's ALIAS records that point outside it. Queued by the triggers of dns_record. */
  alias: { domainId: string }
  /** Check whether a zone's primary has a new version, and transfer it. */
  follow: { domainId: string }
  /** Delete what a large zone, or a key that signed one, has left behind. Queued by the triggers `zone_purge`. */
  purge: { ownerId: string }
  /** Query the parent of a signed zone for its DS records, and take the next step. */
  dnssec: { domainId: string }
  /** Find out who gets an email about an event, and queue one for each. Queued by the trigger `event_mail`. */
  notify: { eventId: string }
  /** Call a production path that is due. */
  cron: { cronId: string }
  /** Send an email to its recipient. */
  mail: { recipient: string; about: string }
}

export type JobKind = keyof JobKinds

/** Every kind; a missing one doesn't compile. */
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
