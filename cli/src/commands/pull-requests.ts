// `berth pull-requests`, and `berth approve`: what strangers wrote is built once somebody has looked at the very commit.
import type { Schemas } from '../../../sdk/src/types.ts'
import type { Action } from '../kit/action.ts'
import { collect } from '../kit/collect.ts'
import type { Context } from '../kit/context.ts'
import { exitCodes, Failure, usage } from '../kit/failures.ts'
import { requireProject } from '../kit/project.ts'
import { confirm } from '../kit/prompt.ts'
import { clean, time } from '../kit/text.ts'

type OfProject = { project?: string }
type PullRequest = Schemas['PullRequest']

async function listOf(context: Context, project: string): Promise<PullRequest[]> {
  return collect((await context.berth()).list('/projects/{project}/pull-requests', { params: { path: { project } } }))
}

const approvals: Record<PullRequest['approval'], string> = {
  not_needed: '-',
  needed: 'needed',
  approved: 'approved',
}

export const list: Action<OfProject & { all?: boolean }> = async (context, _, { all, ...given }) => {
  const project = await requireProject(context, given.project)
  const found = (await listOf(context, project)).filter(({ state }) => all || state === 'OPEN')
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

export const approve: Action<OfProject & { commit?: string }> = async (context, [number], { commit, ...given }) => {
  const { out, options, signal } = context
  const project = await requireProject(context, given.project)
  const found = (await listOf(context, project)).find((one) => String(one.number) === number)
  if (!found) throw new Failure(exitCodes.notFound, `${project} has no pull request ${number}.`)
  const looked = commit?.toLowerCase()
  // The API takes no short hash, because another commit with the same beginning is easily made.
  if (looked !== undefined && !/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(looked)) {
    throw usage('--commit must be the whole hash of the commit.', `The newest is ${clean(found.commitSha)}.`)
  }
  if (looked === undefined) {
    // With --yes alone, whatever is the newest commit by now would be approved.
    if (options.yes) throw usage('--yes needs --commit, the commit that you looked at.')
    out.say(`${clean(found.title)} (#${found.number}, from ${clean(found.branch)})`)
    out.say('Its build runs whatever the commit says, without the variables of the project.')
    await confirm(`Did you look at ${clean(found.commitSha)}, and approve it?`, false, signal)
  }
  const approved = await (await context.berth()).post('/projects/{project}/pull-requests/{number}/approve', {
    params: { path: { project, number: number! } },
    body: { commit: looked ?? found.commitSha },
  })
  out.say(
    `Approved ${clean(approved.commit)}. Run \`berth logs -f ${clean(approved.deployment)}\` to follow its build.`,
  )
  out.show(approved, () => clean(approved.deployment))
}
