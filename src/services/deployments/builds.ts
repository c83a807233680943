// What a worker needs to build a deployment. For the system, so there is no owner check.
import type { Deployment, Project } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { placeOf, type Vault } from '../../platform/secrets/secrets.ts'
import { labelBranch, type ProjectView } from '../projects/index.ts'
import { queueStatus } from './commit-statuses.ts'
import type { DeploymentView } from './deployments.ts'

const ofDeployment = {
  id: true,
  accountId: true,
  projectId: true,
  state: true,
  ref: true,
  commit: true,
  production: true,
  label: true,
  source: true,
  createdAt: true,
  startCommand: true,
  untrusted: true,
} as const

const ofProject = {
  name: true,
  repo: true,
  framework: true,
  rootDirectory: true,
  installCommand: true,
  buildCommand: true,
  outputDirectory: true,
  cleanUrls: true,
  publishAnyway: true,
  buildNetwork: true,
  serverNetwork: true,
  account: { select: { suspendedAt: true } },
} as const

/** The network access of sandboxed commands. */
export type Network = ProjectView['settings']['buildNetwork']

export type Build = Pick<Deployment, keyof typeof ofDeployment> &
  Omit<Pick<Project, Exclude<keyof typeof ofProject, 'account'>>, 'name' | 'framework'> & {
    /** Its name. */
    project: string
    /** Null unless its files were uploaded. */
    upload: { prebuilt: boolean } | null
    framework: ProjectView['framework']
    buildNetwork: Network
    serverNetwork: Network
    /** Whether the account is suspended, so nothing is built. */
    suspended: boolean
  }

export async function findBuild(db: Db, deploymentId: string): Promise<Build | null> {
  const found = await db.deployment.findUnique({
    where: { id: deploymentId },
    select: { ...ofDeployment, upload: { select: { prebuilt: true } }, project: { select: ofProject } },
  })
  // The project was deleted between the two statements.
  if (!found?.project) return null
  const { project, ...deployment } = found
  const { name, framework, buildNetwork, serverNetwork, account, ...settings } = project
  return {
    ...deployment,
    ...settings,
    project: name,
    framework: framework as Build['framework'],
    buildNetwork: buildNetwork as Network,
    serverNetwork: serverNetwork as Network,
    suspended: account.suspendedAt !== null,
  }
}

/** Sets the commit of the ref and the branch of HEAD, if the host did not answer when the deployment was created. */
export async function setCommit(
  db: Db,
  urls: Urls,
  build: Pick<Build, 'id' | 'projectId' | 'ref' | 'commit'>,
): Promise<void> {
  const { id, projectId, ref, commit } = build
  await inTransaction(db, async (db) => {
    const before = await db.deployment.findUnique({ where: { id }, select: { ref: true } })
    const isNamed = before?.ref === 'HEAD' && ref !== 'HEAD'
    const branchLabel = isNamed ? await labelBranch(db, urls, { projectId, ref }) : undefined
    const data = { ref, commit, branchLabel }
    const set = await db.deployment.updateMany({ where: { id, state: 'BUILDING' }, data })
    if (set.count > 0) await queueStatus(db, build)
  })
}

/** Sets the commit message, which is known after the fetch. */
export async function setCommitMessage(db: Db, id: string, commitMessage: string): Promise<void> {
  await db.deployment.updateMany({ where: { id, state: 'BUILDING' }, data: { commitMessage } })
}

/** Sets what was detected in the repository; a server has a start command. */
export async function setDetected(
  db: Db,
  id: string,
  { startCommand, detected }: { startCommand: string | null; detected: NonNullable<DeploymentView['detected']> },
): Promise<void> {
  await db.deployment.updateMany({ where: { id, state: 'BUILDING' }, data: { startCommand, detected } })
}

/**
 * Opens the project's variables for a build and its server; none for code from a fork. A value for the build's target
 * takes precedence over one for all.
 */
export async function openVariables(db: Db, vault: Vault, build: Build): Promise<Record<string, string>> {
  if (build.untrusted) return {}
  const found = await db.variable.findMany({
    where: { projectId: build.projectId, target: { in: ['all', build.production ? 'production' : 'preview'] } },
    // `all` sorts first, so the other one replaces it.
    orderBy: [{ key: 'asc' }, { target: 'asc' }],
  })
  const chosen = new Map(found.map(({ key, sealed }) => [key, sealed]))
  const open = (key: string, sealed: Uint8Array) =>
    vault.open(sealed, placeOf.variable(build.projectId, key)).toString()
  return Object.fromEntries([...chosen].map(([key, sealed]) => [key, open(key, sealed)]))
}

/** The variables that describe a build to itself and its server. */
export function buildFacts(urls: Urls, build: Build): Record<string, string> {
  return {
    BERTH_URL: urls.deployment(build.label),
    BERTH_COMMIT: build.commit,
    BERTH_REF: build.ref,
    BERTH_ENV: build.production ? 'production' : 'preview',
  }
}
