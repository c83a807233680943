// Errors of projects, deployments and their source.

export const projectErrors = {
  project_exists: {
    title: 'The project already exists',
    cause: 'The account already has a project with this name.',
    cure: 'Choose another name, or change the existing project.',
  },
  project_has_domains: {
    title: 'The project still has domains',
    cause: 'A project cannot be deleted while domains are attached to it.',
    cure: 'Delete its domains first.',
  },
  deployment_finished: {
    title: 'The deployment has finished',
    cause: 'Only a deployment that is BUILDING can be canceled.',
    cure: 'There is nothing to cancel.',
  },
  deployment_not_ready: {
    title: 'The deployment is not READY',
    cause: 'Only a READY deployment can be promoted or shared.',
    cure: 'Wait until it is READY.',
  },
  preview_not_protected: {
    title: 'The previews are not protected',
    cause: 'The previews of the project are public, so there is no share link to create.',
    cure: 'Share the deployment’s `url`, or turn on `previewProtection`.',
  },
  deployment_in_production: {
    title: 'The deployment is in production',
    cause: 'A deployment cannot be deleted while it serves the project’s production URL.',
    cure: 'Promote another deployment first.',
  },
  deployment_untrusted: {
    title: 'The deployment comes from a fork',
    cause: 'The commit was approved as a preview without the project’s variables. It can never become production.',
    cure: 'Merge the pull request and deploy its target branch.',
  },
  pull_request_changed: {
    title: 'The pull request has a newer commit',
    cause: '`commit` is no longer the latest commit of the pull request.',
    cure: 'Review and approve the latest commit.',
  },
  pull_request_closed: {
    title: 'The pull request is closed',
    cause: 'Only commits of open pull requests are built.',
    cure: 'Reopen the pull request at the repository host.',
  },
  approval_not_needed: {
    title: 'The pull request needs no approval',
    cause: 'The pull request comes from a branch of the project’s own repository, which is deployed without approval.',
    cure: 'Nothing to do: only pull requests from forks need approval.',
  },
  deployment_building: {
    title: 'The deployment is still BUILDING',
    cause: 'A deployment cannot be deleted while it is BUILDING.',
    cure: 'Cancel it first.',
  },
} as const

export const sourceErrors = {
  upload_offset_wrong: {
    title: 'The chunk does not start at the end of the upload',
    cause: 'The first byte in `Content-Range` is not the next byte that the server expects.',
    cure: 'Continue at the `offset` from `GET /uploads/{sha256}`, or at 0.',
  },
  project_without_repository: {
    title: 'The project has no repository',
    cause: 'The project was created without `repo`, so there is no commit to build.',
    cure: 'Send files as `source`, or set the project’s `repo`.',
  },
  source_incomplete: {
    title: 'Some files of the deployment are missing',
    cause: 'Some files of the deployment were never uploaded, or the platform no longer has them.',
    cure: 'Create a new deployment and upload its files.',
  },
} as const

export const refErrors = {
  ref_not_found: {
    title: 'The ref does not exist',
    cause: 'The repository of the project has no branch, tag or commit with that name.',
    cure: 'Push the branch, or correct `ref`.',
  },
} as const
