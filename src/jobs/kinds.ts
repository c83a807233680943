// Every job there is: its name and what it carries. src/worker.ts has exactly one handler for each.

export type JobKinds = {
  /** Build a deployment and publish it. */
  build: { deploymentId: string }
  /** Take what deleted deployments served off the disk, and with a deleted project its caches. */
  reap: { deploymentIds: string[]; projectId?: string }
  /** Ask the DNS who owns a domain. */
  verify: { domainId: string }
  /** Get or renew the certificate of a domain, or one of the platform's own. */
  issue: { domainId: string } | { platform: 'deployments' | 'api' }
  /** Tell the repository host how a deployment stands. */
  status: { deploymentId: string }
}

export type JobKind = keyof JobKinds
