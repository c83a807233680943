// Explains that a ref is missing in the repository: which branches exist, and what to do.
import type { Branches } from '../../platform/git/git-refs.ts'

/** `branches` is null if the host did not list them. */
export function describeMissingRef(repo: string, ref: string, branches: Branches | null): string {
  if (branches?.count === 0) return `${repo} has no branches yet. Push a commit, then deploy again.`
  const what =
    ref === 'HEAD' ? `${repo} doesn't name a default branch.` : `${repo} has no branch, tag or commit ${ref}.`
  if (!branches) return what
  const { defaultBranch, names, count } = branches
  const listed = names.map((name) => (name === defaultBranch ? `${name} (default)` : name))
  if (count > names.length) listed.push(`${count - names.length} more`)
  const last = listed.pop()
  const list = listed.length > 0 ? `${listed.join(', ')} and ${last}` : last
  const kinds = count === 1 ? 'Its only branch is' : 'Its branches are'
  return `${what} ${kinds} ${list}. Deploy one of them with \`ref\`, or change settings.productionBranch of the project.`
}
