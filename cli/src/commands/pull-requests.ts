// `berth pull-requests` and `berth approve`: code from forks is built after someone has reviewed the exact commit.
import type { Schemas } from '../../../sdk/src/types.ts'
import type { Action } from '../kit/action.ts'
import { collect } from '../kit/collect.ts'
import type { Context } from '../kit/context.ts'
import { exitCodes, Failure, usage } from '../kit/failures.ts'
import { requireProject } from '../kit/project.ts'
import { confirm } from '../kit/prompt.ts'
import { clean, time } from '../kit/text.ts'

type ProjectOption = { project?: string }
type PullRequest = Schemas['PullRequest']

async function listPullRequests(context: Context, project: string): Promise<PullRequest[]> {
  return collect((await context.berth()).list('/projects/{project}/pull-requests', { params: { path: { project } } }))
}

const approvals: Record<PullRequest['approval'], string> = {
  not_needed: '-',
  needed: 'needed',
  approved: 'approved',
}

export const list: Action<ProjectOption & { all?: boolean }> = async (context, _, { all, ...given }) => {
  const project = await requireProject(context, given.project)
  const found = (await listPullRequests(context, project)).filter(({ state }) => all || state === 'OPEN')
  const heads = ['NUMBER', 'STATE', 'COMMIT', 'APPROVAL', 'DEPLOYMENT', 'CHANGED', 'TITLE']
  context.out.list(found, heads, (it: PullRequest) => [
    it.number,
    it.state,
    it.commit,
    approvals[it.approval],
    it.deployment ?? '-',
    time(it.updatedAt),
    it.title,
  ])
}

export const approve: Action<ProjectOption & { commit?: string }> = async (context, [number], { commit, ...given }) => {
  const { out, options, signal } = context
  const project = await requireProject(context, given.project)
  const found = (await listPullRequests(context, project)).find((one) => String(one.number) === number)
  if (!found) throw new Failure(exitCodes.notFound, `${project} has no pull request ${number}.`)
  const reviewed = commit?.toLowerCase()
  // The API refuses short hashes, because another commit with the same prefix is easy to create.
  if (reviewed !== undefined && !/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(reviewed)) {
    throw usage('--commit must be a full commit hash.', `The newest is ${clean(found.commitSha)}.`)
  }
  if (reviewed === undefined) {
    // --yes alone would approve whatever is the newest commit by now.
    if (options.yes) throw usage('--yes needs --commit with the commit you reviewed.')
    out.say(`${clean(found.title)} (#${found.number}, from ${clean(found.branch)})`)
    out.say("The build runs code from the fork, without the project's variables.")
    await confirm(`Have you reviewed ${clean(found.commitSha)}, and do you approve it?`, false, signal)
  }
  const approved = await (await context.berth()).post('/projects/{project}/pull-requests/{number}/approve', {
    params: { path: { project, number: number! } },
    body: { commit: reviewed ?? found.commitSha },
  })
  out.say(
    `Approved ${clean(approved.commit)}. Run \`berth logs -f ${clean(approved.deployment)}\` to follow its build.`,
  )
  out.show(approved, () => clean(approved.deployment))
}
