// Every job there is: its name and what it carries. A worker refuses to start unless each has exactly one handler.

export type JobKinds = {
  /** Build a deployment and publish it. */
  build: { deploymentId: string }
  /** Take what deleted deployments served off the disk. */
  reap: { deploymentIds: string[] }
  /** Ask the DNS who owns a domain. */
  verify: { domainId: string }
  /** Get or renew the certificate of a domain. */
  issue: { domainId: string }
  /** Send one event to one webhook. */
  deliver: { deliveryId: string }
}

export type JobKind = keyof JobKinds
