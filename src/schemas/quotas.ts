// The quotas of an account: their names, what they limit, and the defaults.

/** `ceiling` is the highest limit that takes effect, because more would break something. */
type Quota = { max: number; ceiling?: number; what: string; cure: string }

const MiB = 1024 ** 2
const GiB = 1024 ** 3

export const quotas = {
  projects: { max: 100, what: 'Projects', cure: 'Delete one that is not needed' },
  serverInstances: {
    max: 20,
    what: 'Server instances of all projects',
    cure: 'Lower `instances` of a project, or delete a project that is not needed',
  },
  domains: { max: 100, what: 'Domains', cure: 'Delete one that is not needed' },
  claimsPerMonth: {
    max: 5_000,
    what: 'Names new to the account in a calendar month (UTC)',
    cure: 'Use a wildcard, or wait until next month',
  },
  recordsPerZone: { max: 10_000, what: 'Records of one zone', cure: 'Delete records that are not needed' },
  // BIND secondaries accept no larger set, and refuse the whole zone because of it.
  recordsPerSet: {
    max: 100,
    ceiling: 100,
    what: 'Records of one name and type',
    cure: 'Use fewer records at this name',
  },
  // A set must fit into a message of 64 KiB.
  bytesPerSet: {
    max: 60_000,
    ceiling: 60_000,
    what: 'Bytes of the records of one name and type',
    cure: 'Use fewer or shorter records',
  },
  recordBytes: {
    max: 8 * MiB,
    what: 'Bytes of record names and values in all zones',
    cure: 'Delete records that are not needed',
  },
  dnsKeys: { max: 100, what: 'Keys of all zones', cure: 'Delete one that is not used' },
  tokens: { max: 100, what: 'Tokens', cure: 'Revoke one that is not used' },
  revokedTokens: {
    max: 1_000,
    what: 'Revoked tokens that active ones descend from',
    cure: 'Revoke the active tokens that descend from them',
  },
  members: {
    max: 100,
    what: 'Members and open invitations',
    cure: 'Remove a member, or revoke an invitation',
  },
  openTickets: { max: 50, what: 'Open tickets', cure: 'Close a ticket, or continue in an open one' },
  messagesPerMonth: {
    max: 20_000,
    what: 'Messages to support in a calendar month (UTC)',
    cure: 'Wait until next month',
  },
  webhooks: { max: 50, what: 'Webhooks', cure: 'Delete one that is not needed' },
  deployHooks: { max: 20, what: 'Deploy hooks of one project', cure: 'Delete one that is not used' },
  variables: { max: 200, what: 'Variables of one project', cure: 'Delete one that is not used' },
  buildsAtOnce: { max: 2, what: 'Concurrent builds', cure: 'Wait until one has finished' },
  buildsQueued: { max: 50, what: 'Deployments waiting to be built', cure: 'Wait, or cancel one' },
  buildMinutesPerMonth: {
    max: 3_000,
    what: 'Build minutes in a calendar month (UTC)',
    cure: 'Wait until next month',
  },
  storedBytes: { max: 10 * GiB, what: 'Bytes of all deployments', cure: 'Delete deployments that are not needed' },
  uploadFileBytes: { max: 100 * MiB, what: 'Bytes of one uploaded file', cure: 'Send a smaller file' },
  sourceFiles: {
    max: 20_000,
    what: 'Files of one deployment without git',
    cure: 'Leave out what the build can install or create, such as node_modules',
  },
  sourceBytes: { max: GiB, what: 'Bytes of one deployment without git', cure: 'Send less' },
  uploadBytes: {
    max: 10 * GiB,
    what: 'Bytes of pending uploads, and of uploads that deployments were built from',
    cure: 'Delete deployments that are not needed, or wait an hour until unfinished uploads expire',
  },
  streams: { max: 20, what: 'Open streams', cure: 'Close one' },
  waits: { max: 50, what: 'Open requests with `wait`', cure: 'Wait until one has finished' },
} as const satisfies Record<string, Quota>

export type QuotaName = keyof typeof quotas

export const quotaNames = Object.keys(quotas) as QuotaName[]

export type Limits = Record<QuotaName, number>

/** The limits that take effect, whatever was set. The database function `account_limit` does the same. */
export function withinCeilings(limits: Limits): Limits {
  const entries = quotaNames.map((name) => [
    name,
    Math.min(limits[name], (quotas[name] as Quota).ceiling ?? limits[name]),
  ])
  return Object.fromEntries(entries) as Limits
}

/** The environment variable that sets a quota: `recordsPerZone` is `QUOTA_RECORDS_PER_ZONE`. */
export function quotaVariable(name: QuotaName): string {
  return `QUOTA_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
}
