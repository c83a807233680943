// Errors of domains and DNS zones.

export const domainErrors = {
  domain_exists: {
    title: 'The domain is already attached',
    cause: 'The domain is already attached to a project of this account.',
    cure: 'To attach it elsewhere, delete it first.',
  },
  domain_taken: {
    title: 'The domain belongs to another account',
    cause:
      'Another account verified the domain or a parent of it, or removed it less than 7 days ago; or a parent is ' +
      'attached to a project of this account that the token cannot access.',
    cure: 'Ask the other account to remove it, or open a ticket.',
  },
  claim_ended: {
    title: 'The claim has expired',
    cause: 'This account did not verify the domain within 30 days, so we no longer check it.',
    cure: 'Export the zone, delete the domain, and add it again.',
  },
  domain_has_redirects: {
    title: 'Other domains redirect to this one',
    cause: 'A domain that others redirect to cannot be deleted, and cannot redirect itself.',
    cure: 'Change `redirectTo` of the other domains first; null removes it.',
  },
  domain_has_wildcard: {
    title: 'The domain still has its wildcard',
    cause: 'A domain cannot be deleted while its wildcard is attached, because the wildcard uses its zone.',
    cure: 'Delete the wildcard first.',
  },
} as const

export const zoneErrors = {
  record_conflict: {
    title: 'The record conflicts with the zone',
    cause: 'The record already exists, or DNS does not allow it beside an existing record.',
    cure: 'Change or delete the existing record, named in `record`.',
  },
  key_exists: {
    title: 'The key already exists',
    cause: 'The zone already has a key with this name.',
    cure: 'Choose another name, or delete the existing key.',
  },
  zone_follows_primary: {
    title: 'The zone follows a primary',
    cause: 'The zone copies its records from a primary nameserver elsewhere, so you cannot change them here.',
    cure: 'Change records at the primary, or stop following it.',
  },
  dnssec_not_ready: {
    title: 'The key cannot be rolled over now',
    cause: 'The parent zone has no DS record for the current key, or a rollover is already in progress.',
    cure: 'Retry when `GET /dns/{domain}/dnssec` shows `ACTIVE` and only one key.',
  },
  discovery_in_progress: {
    title: 'Another discovery is in progress',
    cause: 'The account is already running a discovery, or too many others are.',
    cure: 'Retry after `Retry-After` seconds.',
  },
  import_in_progress: {
    title: 'Another large import is in progress',
    cause: 'The account is already importing a large zone file. Only one can run at a time.',
    cure: 'Retry after `Retry-After` seconds.',
  },
} as const
