// Builds the commit status of a deployment.
import type { Urls } from '../../platform/http/urls.ts'
import type { DueStatus } from '../../services/deployments/index.ts'

/** For GitHub, Gitea and Forgejo. */
export type CommitStatus = {
  state: 'pending' | 'success' | 'failure' | 'error'
  target_url?: string
  description: string
  context: string
}

/** For GitLab, which finds the pipeline by `ref`. */
export type PipelineStatus = {
  state: 'pending' | 'running' | 'success' | 'failed' | 'canceled'
  target_url?: string
  description: string
  name: string
  ref?: string
}

// GitHub refuses longer descriptions.
const maxDescription = 140

// Not caused by the commit, so hosts show these as errors instead of failures.
const platformErrors = new Set([
  'platform_disk_full',
  'platform_storage_unavailable',
  'platform_runner_unavailable',
  'worker_lost',
  'internal_error',
  'repository_unreachable',
  'repository_access_denied',
  'host_key_changed',
])

/** Replacements for messages that quote output, because commits may be public. */
const quotedErrors: Record<string, string> = {
  install_failed: 'The installation failed',
  build_failed: 'The build failed',
  server_unhealthy: 'The server is not healthy',
}

export function statusOf(urls: Urls, due: DueStatus): CommitStatus {
  const kind = due.production ? 'production' : 'preview'
  const context = `berth/${due.project}/${kind}`
  const build = (state: CommitStatus['state'], description: string, more: { target_url?: string } = {}) => ({
    state,
    ...more,
    description: description.length > maxDescription ? `${description.slice(0, maxDescription - 1)}…` : description,
    context,
  })
  switch (due.state) {
    case 'BUILDING':
      return build('pending', `Building for ${kind}`)
    case 'READY': {
      // The times come from two clocks, the server's and the database's.
      const seconds = Math.max(0, Math.round((due.finishedAt!.getTime() - due.createdAt.getTime()) / 1000))
      return build('success', `Deployed in ${seconds} s`, { target_url: urls.deployment(due.label) })
    }
    case 'ERROR':
      return build(
        platformErrors.has(due.errorCode ?? '') ? 'error' : 'failure',
        quotedErrors[due.errorCode ?? ''] ?? (due.errorMessage?.split('\n', 1)[0] || 'The deployment failed'),
      )
    case 'CANCELED':
      return build('error', 'Canceled, or superseded by a newer push')
  }
}

export function bodyOf(urls: Urls, due: DueStatus): CommitStatus | PipelineStatus {
  const status = statusOf(urls, due)
  if (due.provider !== 'gitlab') return status
  const { state: _state, context, ...rest } = status
  // Only for pushes, where the ref is certainly a branch.
  return { ...rest, state: pipelineState(due), name: context, ...(due.source === 'push' && { ref: due.ref }) }
}

function pipelineState({ state, startedAt }: DueStatus): PipelineStatus['state'] {
  switch (state) {
    case 'BUILDING':
      return startedAt ? 'running' : 'pending'
    case 'READY':
      return 'success'
    case 'ERROR':
      return 'failed'
    case 'CANCELED':
      return 'canceled'
  }
}

/**
 * Whether the host refused a status because it already has this or a later one: GitLab's state machine doesn't allow
 * running after running, nor pending after success.
 */
export function hasNewerStatus(provider: DueStatus['provider'], status: number, text: string): boolean {
  return provider === 'gitlab' && status === 400 && /Cannot transition status/.test(text)
}

export function statusUrl(due: DueStatus): string {
  if (due.provider === 'gitlab') {
    return `${due.apiUrl}/projects/${encodeURIComponent(due.repo)}/statuses/${due.commit}`
  }
  return `${due.apiUrl}/repos/${due.repo}/statuses/${due.commit}`
}

export function statusHeaders(provider: DueStatus['provider'], token: string): Record<string, string> {
  const common = { 'user-agent': 'Berth', accept: 'application/json' }
  if (provider === 'gitea') return { ...common, authorization: `token ${token}` }
  if (provider === 'gitlab') return { ...common, 'private-token': token }
  return {
    ...common,
    accept: 'application/vnd.github+json',
    'x-github-api-version': '2022-11-28',
    authorization: `Bearer ${token}`,
  }
}
