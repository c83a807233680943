// Public entry point of deployments, from the queue to retention.

export {
  type Build,
  buildFacts,
  findBuild,
  type Network,
  openVariables,
  setCommit,
  setCommitMessage,
  setDetected,
} from './builds.ts'
export { type DueStatus, findDueStatus, recordStatus } from './commit-statuses.ts'
export {
  createDeployment,
  type DeploymentPlan,
  type DeploymentView,
  deleteDeployment,
  findDeployment,
  findDeploymentToChange,
  getDeployment,
  rowOf,
  viewDeployment,
  withProject,
} from './deployments.ts'
export { type EdgeHostRow, readEdgeHosts, readTouchedEdgeHosts } from './hosts.ts'
export { listDeployments } from './list.ts'
export { appendLines, lastLinesOf, linesAfter, type NewLogLine, trimRunLines } from './logs/deployment-logs.ts'
export { deleteOldRuntimeLines, runtimeLinesAfter } from './logs/runtime-logs.ts'
export { describeMissingRef } from './missing-refs.ts'
export { checkDeployment, type PlanOptions, planDeployment, repositoryTimeoutMs, unreachableWarning } from './plans.ts'
export { announceWaiting, describeStart, exceededMinutes, noticeableMs, startBuild } from './queue.ts'
export { isUploaded, planRedeployment } from './redeployments.ts'
export { type ClosedBranch, closeBranch, removeClosedBranches, reopenBranch } from './retention/branches.ts'
export { deleteOldLogLines, removeOldDeployments } from './retention/retention.ts'
export {
  countBytes,
  findProjects,
  findServed,
  findToBuild,
  findUncounted,
  whileNoBackup,
} from './retention/stored-files.ts'
export { shareDeployment } from './shares.ts'
export { readUploaded, type UploadedFile } from './sources.ts'
export {
  type BuildReport,
  cancelBuildsOf,
  cancelDeployment,
  type Failure,
  finishDeployment,
  initialState,
  isFinished,
  type Outcome,
  suspended,
  terminalStates,
  transitions,
} from './states.ts'
export { supersede, supersedeBy } from './superseding.ts'
export { createPlanned, endUnfinished, planArchive, planUploaded, type UploadPlan } from './uploaded.ts'
