// Every schema with a name: the components of openapi.yaml.
import { Account, AccountLimits, Regions } from './account.ts'
import { FieldProblem, Problem } from './common.ts'
import { Deployment, DeploymentError, DeploymentStates, LogLine } from './deployments.ts'
import { DnsBatchResult, DnsRecord, DnsRecordUpdate, PlannedDnsRecord } from './dns-records.ts'
import { Certificate, Domain, DomainVerification } from './domains.ts'
import { AccountSummary, Event, ImportedZone, SuspendedAccount, Suspension } from './events.ts'
import { Node } from './nodes.ts'
import { NewAccount, OperatorAccount, OperatorTicket } from './operator.ts'
import { OperatorDomain } from './operator-domains.ts'
import { Project, ProjectSettings, Variable } from './projects.ts'
import { CommitStatusTarget, PushHook, PushHookWithSecret, PushResult } from './push-hooks.ts'
import { SearchResults } from './search.ts'
import { OperatorTakedown, Takedown, TakedownNotice } from './takedowns.ts'
import { Ticket, TicketMessage } from './tickets.ts'
import { Token, TokenWithSecret } from './tokens.ts'
import { Delivery, DeliveryWithAttempts, Webhook, WebhookWithSecret } from './webhooks.ts'
import { ZoneImport, ZoneStatus } from './zones.ts'

export const schemas = [
  Token,
  TokenWithSecret,
  Event,
  AccountSummary,
  Suspension,
  SuspendedAccount,
  Account,
  AccountLimits,
  Regions,
  Project,
  ProjectSettings,
  Variable,
  PushHook,
  PushHookWithSecret,
  CommitStatusTarget,
  PushResult,
  Deployment,
  DeploymentError,
  DeploymentStates,
  LogLine,
  Domain,
  DomainVerification,
  Certificate,
  DnsRecord,
  PlannedDnsRecord,
  DnsRecordUpdate,
  DnsBatchResult,
  ZoneImport,
  ImportedZone,
  ZoneStatus,
  Ticket,
  TicketMessage,
  Webhook,
  WebhookWithSecret,
  Delivery,
  DeliveryWithAttempts,
  OperatorTicket,
  OperatorDomain,
  OperatorAccount,
  NewAccount,
  Node,
  Takedown,
  OperatorTakedown,
  TakedownNotice,
  SearchResults,
  Problem,
  FieldProblem,
]
