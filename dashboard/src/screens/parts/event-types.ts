// The event types in groups, for filters and webhooks. The check below doesn't compile if the API has another type.
import type { Event } from '../../kit/index.ts'

const groups = {
  deployment: ['created', 'ready', 'error', 'canceled', 'promoted', 'served', 'deleted'],
  project: ['created', 'updated', 'deleted'],
  push: ['skipped'],
  domain: [
    'created',
    'verified',
    'unverified',
    'updated',
    'moved',
    'deleted',
    'ssl.active',
    'ssl.renewed',
    'ssl.error',
    'ssl.failing',
    'ssl.expired',
  ],
  dns: [
    'record.created',
    'record.updated',
    'record.deleted',
    'zone.imported',
    'key.created',
    'key.deleted',
    'secondary.lagging',
    'secondary.current',
    'primary.set',
    'primary.removed',
    'dnssec.updated',
    'dnssec.signing',
    'dnssec.awaiting_ds',
    'dnssec.active',
    'dnssec.leaving',
    'dnssec.unsigned',
    'dnssec.rollover_started',
    'dnssec.rollover_announced',
    'dnssec.rollover_finished',
  ],
  ticket: ['created', 'replied', 'status_changed'],
  token: ['created', 'updated', 'revoked', 'rotated'],
  webhook: ['disabled', 'ping'],
  account: ['created', 'limits_changed', 'resumed', 'suspended'],
  takedown: ['created', 'ended'],
  member: ['invited', 'joined', 'updated', 'removed'],
  session: ['created'],
  pull_request: ['approved'],
} as const

type Listed = { [G in keyof typeof groups]: `${G}.${(typeof groups)[G][number]}` }[keyof typeof groups]
const _complete: Exclude<Event['type'], Listed> extends never ? true : Exclude<Event['type'], Listed> = true

const titles: Record<keyof typeof groups, string> = {
  deployment: 'Deployments',
  project: 'Projects',
  push: 'Pushes',
  domain: 'Domains and certificates',
  dns: 'DNS',
  ticket: 'Tickets',
  token: 'Tokens',
  webhook: 'Webhooks',
  account: 'The account',
  takedown: 'Takedowns',
  member: 'Members',
  session: 'Sign-ins',
  pull_request: 'Pull requests',
}

export const eventGroups = Object.entries(groups).map(([name, types]) => ({
  title: titles[name as keyof typeof groups],
  all: `${name}.*`,
  types: types.map((type) => `${name}.${type}`),
}))
