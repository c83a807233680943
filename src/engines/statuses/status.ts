// How a deployment is told to a repository host: the state, the sentence and the address of its commit status.
import { type Config, edgeUrl } from '../../config.ts'
import type { DueStatus } from '../../services/commit-statuses.ts'

export type CommitStatus = {
  state: 'pending' | 'success' | 'failure' | 'error'
  target_url?: string
  description: string
  context: string
}

// GitHub refuses longer ones.
const maxDescription = 140

// Failures that are not the commit's: hosts show them apart from those that are.
const notTheCommits = new Set(['worker_lost', 'internal_error', 'repository_unreachable'])

export function statusOf(config: Config, due: DueStatus): CommitStatus {
  const kind = due.production ? 'production' : 'preview'
  const context = `berth/${due.project}/${kind}`
  const say = (state: CommitStatus['state'], description: string, more: { target_url?: string } = {}) => ({
    state,
    ...more,
    description: description.length > maxDescription ? `${description.slice(0, maxDescription - 1)}…` : description,
    context,
  })
  switch (due.state) {
    case 'BUILDING':
      return say('pending', `Building for ${kind}`)
    case 'READY': {
      // The two times are of two clocks, the server's and the database's.
      const seconds = Math.max(0, Math.round((due.finishedAt!.getTime() - due.createdAt.getTime()) / 1000))
      return say('success', `Deployed in ${seconds} s`, { target_url: edgeUrl(config, due.label) })
    }
    case 'ERROR':
      return say(
        notTheCommits.has(due.errorCode ?? '') ? 'error' : 'failure',
        // The first line: below it is what a server printed, and commits may be public.
        due.errorMessage?.split('\n', 1)[0] || 'The deployment failed',
      )
    case 'CANCELED':
      return say('error', 'Canceled, or superseded by a newer push')
  }
}

export function statusUrl(due: DueStatus): string {
  return `${due.apiUrl}/repos/${due.repo}/statuses/${due.commit}`
}

export function statusHeaders(provider: DueStatus['provider'], token: string): Record<string, string> {
  const common = { 'user-agent': 'Berth', accept: 'application/json' }
  if (provider === 'gitea') return { ...common, authorization: `token ${token}` }
  return {
    ...common,
    accept: 'application/vnd.github+json',
    'x-github-api-version': '2022-11-28',
    authorization: `Bearer ${token}`,
  }
}
