// Every schema with a name: the components of openapi.yaml.
import { Account, Regions } from './account.ts'
import { FieldProblem, Problem } from './common.ts'
import { Deployment, DeploymentError, DeploymentStates, LogLine } from './deployments.ts'
import { DnsBatchResult, DnsRecord, DnsRecordUpdate, PlannedDnsRecord } from './dns-records.ts'
import { Certificate, Domain, DomainVerification } from './domains.ts'
import { AccountSummary, Event } from './events.ts'
import { NewAccount, OperatorAccount, OperatorTicket } from './operator.ts'
import { Project, ProjectSettings, Variable } from './projects.ts'
import { Ticket, TicketMessage } from './tickets.ts'
import { Token, TokenWithSecret } from './tokens.ts'
import { Delivery, Webhook, WebhookWithSecret } from './webhooks.ts'
import { ZoneImport, ZoneStatus } from './zones.ts'

export const schemas = [
  Token,
  TokenWithSecret,
  Event,
  AccountSummary,
  Account,
  Regions,
  Project,
  ProjectSettings,
  Variable,
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
  ZoneStatus,
  Ticket,
  TicketMessage,
  Webhook,
  WebhookWithSecret,
  Delivery,
  OperatorTicket,
  OperatorAccount,
  NewAccount,
  Problem,
  FieldProblem,
]
