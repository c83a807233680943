// Every route, listed by hand; openapi.yaml keeps this order.
import { authRoutes } from './auth/auth.ts'
import { deployHookCallRoutes } from './hooks/deploy.ts'
import { gitHookRoutes } from './hooks/git.ts'
import { accountRoutes } from './routes/account.ts'
import { cronRoutes } from './routes/crons.ts'
import { deliveryRoutes } from './routes/deliveries.ts'
import { deployHookRoutes } from './routes/deploy-hooks.ts'
import { deploymentCreationRoutes } from './routes/deployment-creation.ts'
import { deploymentLogRoutes } from './routes/deployment-logs.ts'
import { deploymentShareRoutes } from './routes/deployment-shares.ts'
import { deploymentRoutes } from './routes/deployments.ts'
import { discoveryRoutes } from './routes/discovery.ts'
import { dnsKeyRoutes } from './routes/dns-keys.ts'
import { dnsRecordRoutes } from './routes/dns-records.ts'
import { dnssecRoutes } from './routes/dnssec.ts'
import { domainRoutes } from './routes/domains.ts'
import { eventRoutes } from './routes/events.ts'
import { invitationRoutes } from './routes/invitations.ts'
import { mailRoutes } from './routes/mail.ts'
import { memberRoutes } from './routes/members.ts'
import { oidcExchangeRoutes, oidcTrustRoutes } from './routes/oidc.ts'
import { operatorAccountRoutes } from './routes/operator-accounts.ts'
import { operatorDomainRoutes } from './routes/operator-domains.ts'
import { operatorJobRoutes } from './routes/operator-jobs.ts'
import { operatorLimitRoutes } from './routes/operator-limits.ts'
import { operatorNodeRoutes } from './routes/operator-nodes.ts'
import { operatorTakedownRoutes } from './routes/operator-takedowns.ts'
import { operatorTicketRoutes } from './routes/operator-tickets.ts'
import { platformRoutes } from './routes/platform.ts'
import { productionRoutes } from './routes/production.ts'
import { projectRoutes } from './routes/projects.ts'
import { pullRequestRoutes } from './routes/pull-requests.ts'
import { pushHookRoutes } from './routes/push-hooks.ts'
import { redeploymentRoutes } from './routes/redeployments.ts'
import { repositoryAccessRoutes } from './routes/repository-access.ts'
import { rrsetRoutes } from './routes/rrsets.ts'
import { runtimeLogRoutes } from './routes/runtime-logs.ts'
import { searchRoutes } from './routes/search.ts'
import { ticketRoutes } from './routes/tickets.ts'
import { tokenRoutes } from './routes/tokens.ts'
import { trafficRoutes } from './routes/traffic.ts'
import { uploadRoutes } from './routes/uploads.ts'
import { variableRoutes } from './routes/variables.ts'
import { webhookRoutes } from './routes/webhooks.ts'
import { zonePrimaryRoutes } from './routes/zone-primaries.ts'
import { zoneRoutes } from './routes/zones.ts'

/** Routes below /api, which the guard protects. */
export const apiRoutes = [
  projectRoutes,
  variableRoutes,
  pushHookRoutes,
  deployHookRoutes,
  pullRequestRoutes,
  cronRoutes,
  repositoryAccessRoutes,
  oidcTrustRoutes,
  deploymentCreationRoutes,
  deploymentRoutes,
  deploymentLogRoutes,
  uploadRoutes,
  productionRoutes,
  deploymentShareRoutes,
  redeploymentRoutes,
  runtimeLogRoutes,
  domainRoutes,
  dnsRecordRoutes,
  rrsetRoutes,
  dnsKeyRoutes,
  dnssecRoutes,
  discoveryRoutes,
  zonePrimaryRoutes,
  zoneRoutes,
  trafficRoutes,
  tokenRoutes,
  memberRoutes,
  invitationRoutes,
  eventRoutes,
  accountRoutes,
  searchRoutes,
  ticketRoutes,
  webhookRoutes,
  deliveryRoutes,
  operatorTicketRoutes,
  operatorAccountRoutes,
  operatorDomainRoutes,
  operatorLimitRoutes,
  operatorNodeRoutes,
  operatorJobRoutes,
  operatorTakedownRoutes,
]

/** Routes outside /api that need no token. */
export const publicRoutes = [
  platformRoutes,
  gitHookRoutes,
  deployHookCallRoutes,
  oidcExchangeRoutes,
  mailRoutes,
  authRoutes,
]
