// Door of webhooks: who receives what, and how deliveries went.
export { findDelivery, listDeliveries, pingWebhook, redeliver } from './deliveries.ts'
export {
  countFailures,
  countWaiting,
  isGone,
  type Outcome,
  pruneDeliveries,
  pruneSurplus,
  type Result,
  recordResults,
  succeeded,
} from './results.ts'
export {
  type Claimed,
  claimDeliveries,
  type LeasedWebhook,
  releaseLeases,
  renewLeases,
  type Share,
  takeDue,
  takePending,
  wakeSendingOf,
} from './sending.ts'
export { type TargetRules, targetRefusal } from './targets.ts'
export {
  changeWebhook,
  checkWebhook,
  createWebhook,
  deleteWebhook,
  disableWebhook,
  findWebhook,
  listWebhooks,
  rotateSecret,
  viewWebhook,
  type WebhookView,
} from './webhooks.ts'
