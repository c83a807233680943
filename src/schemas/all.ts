// Every named schema: the components of openapi.yaml.
import * as account from './account.ts'
import * as common from './common.ts'
import * as crons from './crons.ts'
import * as deployHooks from './deploy-hooks.ts'
import * as deployments from './deployments.ts'
import * as discovery from './discovery.ts'
import * as dnsKeys from './dns-keys.ts'
import * as dnsRecords from './dns-records.ts'
import * as dnssec from './dnssec.ts'
import * as domains from './domains.ts'
import * as events from './events.ts'
import * as jobs from './jobs.ts'
import * as nodes from './nodes.ts'
import * as oidc from './oidc.ts'
import * as operator from './operator.ts'
import * as operatorDomains from './operator-domains.ts'
import * as people from './people.ts'
import * as production from './production.ts'
import * as projectSettings from './project-settings.ts'
import * as projects from './projects.ts'
import * as pullRequests from './pull-requests.ts'
import * as pushHooks from './push-hooks.ts'
import * as repositoryAccess from './repository-access.ts'
import * as rrsets from './rrsets.ts'
import * as runtimeLogs from './runtime-logs.ts'
import * as search from './search.ts'
import * as secondaries from './secondaries.ts'
import * as takedowns from './takedowns.ts'
import * as tickets from './tickets.ts'
import * as tokens from './tokens.ts'
import * as traffic from './traffic.ts'
import * as uploads from './uploads.ts'
import * as webhooks from './webhooks.ts'
import * as zonePrimaries from './zone-primaries.ts'
import * as zones from './zones.ts'

const files = [
  ...[
    account,
    common,
    crons,
    deployHooks,
    deployments,
    discovery,
    dnsKeys,
    dnsRecords,
    dnssec,
    domains,
    events,
    jobs,
    nodes,
    oidc,
    operator,
    operatorDomains,
    production,
    projectSettings,
    projects,
  ],
  ...[people, pullRequests, pushHooks, repositoryAccess, rrsets, runtimeLogs, search, secondaries],
  ...[takedowns, tickets, tokens, traffic, uploads, webhooks, zonePrimaries, zones],
]

type Named = { $id: string }

function isNamed(value: unknown): value is Named {
  return typeof (value as Named | null)?.$id === 'string'
}

/** Replaces every named schema inside this one by a reference. */
export function byName<T>(value: T, isInner = false): T {
  if (isInner && isNamed(value)) return { $ref: `${value.$id}#` } as T
  if (Array.isArray(value)) return value.map((item) => byName(item, true)) as T
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, byName(item, true)])) as T
}

/** Enums that have a name of their own in the document, wherever they occur. */
export const enums: Record<string, readonly string[]> = {
  DeploymentState: deployments.deploymentStates,
  DeliveryState: webhooks.deliveryStates,
  DnsDuringSuspension: events.dnsDuringSuspension,
  EventType: events.eventTypes,
  Framework: projects.frameworks,
  Network: projectSettings.networks,
  RepositoryAccessKind: repositoryAccess.accessKinds,
  Scope: tokens.tokenScopes,
  SslState: domains.sslStates,
  StatusProvider: pushHooks.statusProviders,
  TicketPriority: tickets.ticketPriorities,
  TicketStatus: tickets.ticketStatuses,
  TrafficStep: traffic.trafficSteps,
  VariableTarget: projects.variableTargets,
}

/** Every named export of the files, once each, sorted by name. */
export const schemas: Named[] = files
  .flatMap((file) => Object.values<unknown>(file).flat().filter(isNamed))
  .sort((a, b) => (a.$id < b.$id ? -1 : 1))
  .map((schema) => byName(schema))
