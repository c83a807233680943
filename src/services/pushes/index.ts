// Public entry point of pushes: events from repository hosts, and deploy hooks.
export {
  callDeployHook,
  checkDeployHook,
  createDeployHook,
  deleteDeployHook,
  deployHookVersion,
  findCalledHook,
  findDeployHook,
  listDeployHooks,
} from './deploy-hooks.ts'
export { readPullRequestEvent } from './pull-request-events.ts'
export { approvePullRequest, deleteOldPullRequests, listPullRequests } from './pull-requests.ts'
export {
  apiUrlOf,
  createPushHook,
  deleteCommitStatusTarget,
  deletePushHook,
  findPushHook,
  putCommitStatusTarget,
} from './push-hooks.ts'
export { createPushVerifier, deleteOldPushes, receivePush, requireSignatureHeaders } from './pushes.ts'
export { receivePullRequest } from './received-pull-requests.ts'
export { deliveryOfPush, eventOfPush, payloadOfForm } from './signatures.ts'
