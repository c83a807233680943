// Parses pull and merge request events of all repository hosts into one form. Their content is untrusted.
import { invalidField } from '../../platform/errors.ts'
import { isRefName } from '../../platform/git/repositories.ts'

export type PullRequestEvent = {
  /** open: opened or has a new commit; edit: the title changed. */
  action: 'open' | 'edit' | 'close' | 'other'
  /** The host's name of the event. */
  name: string
  /** The target repository, as `<owner>/<repository>`. */
  repository: string
  number: number
  title: string
  branch: string
  fromFork: boolean
  commit: string
  /** The ref of its commits in the target repository. */
  ref: string
  /** The host's time of the change; null if unknown. */
  updatedAt: Date | null
}

const actions: Record<string, PullRequestEvent['action']> = {
  opened: 'open',
  reopened: 'open',
  // GitHub; then Gitea and Forgejo.
  synchronize: 'open',
  synchronized: 'open',
  edited: 'edit',
  closed: 'close',
  // GitLab.
  open: 'open',
  reopen: 'open',
  update: 'open',
  close: 'close',
  merge: 'close',
}

const maxTitle = 200
const maxNumber = 2 ** 31 - 1

type Fields = Record<string, unknown>

const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** One line of limited length, without control characters that could change the direction of the text around it. */
function titleOf(value: unknown): string {
  const line = textOf(value)
    .slice(0, 4 * maxTitle)
    .toWellFormed()
    .replace(/[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]+/gu, ' ')
    .trim()
  return [...line].slice(0, maxTitle).join('')
}

function timeOf(value: unknown): Date | null {
  const ms = Date.parse(textOf(value))
  // A time in the future would make every later event look outdated.
  return Number.isFinite(ms) && ms > 0 ? new Date(Math.min(ms, Date.now())) : null
}

/** Throws an error for the host if the body is not a valid event. */
export function readPullRequestEvent(body: unknown): PullRequestEvent {
  const event = fieldsOf(body)
  const found = event.object_kind === 'merge_request' ? ofGitLab(event) : ofGitHub(event)
  if (found.action === 'other') return found
  const { number, commit, branch } = found
  if (!Number.isInteger(number) || number < 1 || number > maxNumber) {
    throw invalidField('#/number', 'bad_format', 'must be the number of the pull request')
  }
  if (!/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(commit)) {
    throw invalidField('#/pull_request/head/sha', 'bad_format', 'must be the full hash of the latest commit')
  }
  if (!isRefName(branch) || !branch.isWellFormed()) {
    throw invalidField('#/pull_request/head/ref', 'bad_format', 'must be a valid git branch name')
  }
  return found
}

/** Parses events of GitHub, Gitea and Forgejo. */
function ofGitHub(event: Fields): PullRequestEvent {
  const request = fieldsOf(event.pull_request)
  const head = fieldsOf(request.head)
  const repository = textOf(fieldsOf(event.repository).full_name)
  // Null once the fork is deleted.
  const from = textOf(fieldsOf(head.repo).full_name)
  const name = textOf(event.action)
  const number = Number(event.number ?? request.number)
  return {
    action: actionOf(name, request.state),
    name: `pull_request ${name}`.slice(0, 100),
    repository,
    number,
    title: titleOf(request.title),
    branch: textOf(head.ref),
    fromFork: repository === '' || from.toLowerCase() !== repository.toLowerCase(),
    commit: textOf(head.sha),
    ref: `refs/pull/${number}/head`,
    updatedAt: timeOf(request.updated_at),
  }
}

function ofGitLab(event: Fields): PullRequestEvent {
  const request = fieldsOf(event.object_attributes)
  const { source_project_id: from, target_project_id: to } = request
  const name = textOf(request.action)
  const number = Number(request.iid)
  return {
    // An update without new commits changes the title, the labels or something else.
    action: actionOf(name === 'update' && !textOf(request.oldrev) ? 'edited' : name, request.state),
    name: `merge_request ${name}`.slice(0, 100),
    repository: textOf(fieldsOf(event.project).path_with_namespace),
    number,
    title: titleOf(request.title),
    branch: textOf(request.source_branch),
    fromFork: !Number.isInteger(from) || from !== to,
    commit: textOf(fieldsOf(request.last_commit).id),
    ref: `refs/merge-requests/${number}/head`,
    updatedAt: timeOf(request.updated_at),
  }
}

/** An event about a closed pull request never reopens it. */
function actionOf(name: string, state: unknown): PullRequestEvent['action'] {
  const action = Object.hasOwn(actions, name) ? actions[name]! : 'other'
  return action !== 'other' && (state === 'closed' || state === 'merged') ? 'close' : action
}
