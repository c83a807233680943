// Door of projects: settings, branches, secrets and hosts.
export { type BranchKey, claimBranch, findBranchLabel, labelBranch } from './branches.ts'
export { type CronSetting, lineOfCron } from './crons.ts'
export { followDefaultBranch, type NamedBranch, storeDefaultBranch } from './default-branch.ts'
export { deploymentLabel, readYielded } from './labels.ts'
export { formerlyNamed, isProjectId, withKey } from './names.ts'
export { allPreviews, hashPreviewPassword, type Pass, readPass, shareParameter, signPass } from './previews.ts'
export { findBefore, findServed, type MoveReason, noteMove } from './production-history.ts'
export {
  changeProject,
  checkProjectField,
  createProject,
  deleteProject,
  findProject,
  findProjectToChange,
  listProjects,
  type ProjectView,
  projectIdsOf,
  showProject,
  viewProject,
} from './projects.ts'
export {
  checkRepositoryAccess,
  deleteRepositoryAccess,
  findRepositoryAccess,
  openAccess,
  putRepositoryAccess,
} from './repository-access.ts'
export { checkSettings } from './settings.ts'
export { isOwned, ownerIn } from './statements.ts'
export { deleteVariable, findVariable, listVariables, openProductionVariable, putVariable } from './variables.ts'
