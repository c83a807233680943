// Door of pushes: what repository hosts report, and deploy hooks.
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
export { approvePullRequest, forgetOldPullRequests, listPullRequests } from './pull-requests.ts'
export {
  apiUrlOf,
  createPushHook,
  deleteCommitStatusTarget,
  deletePushHook,
  findPushHook,
  putCommitStatusTarget,
} from './push-hooks.ts'
export { createPushGate, expectSigned, forgetOldPushes, takePush } from './pushes.ts'
export { takeRequest } from './received-requests.ts'
export { readRequestEvent } from './request-events.ts'
export { deliveryOfPush, eventOfPush, payloadOfForm } from './signatures.ts'
