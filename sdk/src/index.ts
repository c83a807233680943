// The exports of the package.
export { type Berth, type BerthOptions, createBerth, type EventFilter, type WaitOptions } from './client.ts'
export { BerthError, DeploymentFailed, DomainFailed, InvalidResponse } from './errors.ts'
export type { components, operations, paths } from './generated/api.ts'
export type { StreamOptions } from './streams.ts'
export type { AnswerOf, Deployment, Domain, Event, ItemOf, LogLine, Problem, Project, Schemas } from './types.ts'
export { verifyWebhook, type WebhookRequest, WebhookVerificationError } from './webhooks.ts'
