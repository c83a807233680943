// Labels of the hosts below DEPLOYMENT_DOMAIN: each is given out once, and those of projects and branches are held
// for their account.
import { hash } from 'node:crypto'
import type { Db } from '../../platform/database/database.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { randomLabel } from '../../platform/ids.ts'
import { countIdleLabels } from './statements.ts'
import { wellKnownLabels } from './well-known-labels.ts'

const maxOctets = 63
const deploymentSuffix = 9
const productionSuffix = 4
const branchSuffix = 8
const tries = 5
// Labels outlive their projects. An account that made and deleted projects over and over could keep every good name
// from all others; beyond this many, its new projects get labels with a suffix.
const maxIdle = 100

/** Whether no project gets the label: the platform uses its host, or it looks as if it did. */
export function isReserved(urls: Urls, label: string): boolean {
  return wellKnownLabels.has(label) || urls.isOwnLabel(label)
}

/** A name may have 79 characters, which the DNS does not allow in a label. */
function withSuffix(name: string, length: number): string {
  const start = name.slice(0, maxOctets - 1 - length).replace(/-$/, '')
  return `${start}-${randomLabel(length)}`
}

/** A label for a new deployment. That it was never given out before is checked by a trigger when the row is written. */
export function deploymentLabel(urls: Urls, name: string): string {
  for (;;) {
    const label = withSuffix(name, deploymentSuffix)
    if (!isReserved(urls, label)) return label
  }
}

/** Whether a project of this name, or a branch of it, would be served where a branch of another project is. */
const resemblesBranch = (name: string) => /-git(-|$)/.test(name)

/** Labels to try for a project, best first: what the account had for a project of this name, the name, others. */
export async function* productionLabels(db: Db, accountId: string, name: string): AsyncGenerator<string> {
  const held = await db.label.findMany({
    where: { accountId, projectName: name },
    orderBy: { createdAt: 'desc' },
    take: tries,
  })
  for (const label of held) yield label.name
  if (name.length <= maxOctets && !resemblesBranch(name)) {
    const [counted] = await countIdleLabels(db, { accountId, most: maxIdle })
    if (counted!.idle < maxIdle) yield name
  }
  for (let attempt = 0; attempt < tries; attempt++) yield withSuffix(name, productionSuffix)
}

/**
 * Labels to try for a branch, best first: `<label of the project>-git-<branch>`, which is the branch's alone if nothing
 * of its name had to be changed. All others get a hash of the whole name, so `feature/a` never competes with `feature-a`.
 */
export function* branchLabels(projectLabel: string, ref: string): Generator<string> {
  const plain = ref
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
  const label = `${projectLabel}-git-${plain}`
  if (plain === ref && label.length <= maxOctets) yield label
  const end = hash('sha256', `${projectLabel} ${ref}`).slice(0, branchSuffix)
  const start = label.slice(0, maxOctets - 1 - branchSuffix).replace(/-$/, '')
  yield `${start}-${end}`
  // Only what was named to match a hash gets here.
  for (let attempt = 0; attempt < tries; attempt++) yield withSuffix(label, deploymentSuffix)
}

/** A row whose host the platform uses itself, since its configuration changed. */
export type Yielded = { host: string; projectId: string }

/** What gave way to the platform: labels and attached domains that are now names of its own. */
export async function readYielded(db: Db, domain: string, hosts: ReadonlySet<string>): Promise<Yielded[]> {
  const names = [...hosts]
  const labels = names.filter((name) => name.endsWith(`.${domain}`)).map((name) => name.slice(0, -domain.length - 1))
  const ofProject = { where: { label: { in: labels } }, select: { projectId: true, label: true } }
  const [projects, deployments, branches, domains] = await Promise.all([
    db.project.findMany({ where: { label: { in: labels } }, select: { id: true, label: true } }),
    db.deployment.findMany(ofProject),
    db.branch.findMany(ofProject),
    db.domain.findMany({ where: { name: { in: names }, verified: true }, select: { projectId: true, name: true } }),
  ])
  return [
    ...projects.map(({ id, label }) => ({ host: `${label}.${domain}`, projectId: id })),
    ...[...deployments, ...branches].map(({ projectId, label }) => ({ host: `${label}.${domain}`, projectId })),
    ...domains.map(({ projectId, name }) => ({ host: name, projectId })),
  ]
}
