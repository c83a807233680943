// What a worker needs to know of a deployment to build it. Called for the system, not for a caller: there is no owner.
import { type Config, edgeUrl } from '../config.ts'
import { type Db, rows, sql } from '../db.ts'
import type { Vault } from '../secrets.ts'
import { statusJobSql } from './commit-statuses.ts'
import type { ProjectView } from './projects.ts'

export type Build = {
  id: string
  accountId: string
  projectId: string
  project: string
  state: string
  ref: string
  commit: string
  production: boolean
  label: string
  repo: string
  framework: ProjectView['framework']
  rootDirectory: string | null
  installCommand: string | null
  buildCommand: string | null
  outputDirectory: string | null
  spaFallback: boolean
  cleanUrls: boolean
  buildNetwork: Network
  serverNetwork: Network
}

/** What a sandboxed command may reach. */
export type Network = ProjectView['settings']['buildNetwork']

export async function findBuild(db: Db, deploymentId: string): Promise<Build | null> {
  const [build] = await rows<Build>(
    db,
    sql`SELECT d.id, d.account_id AS "accountId", d.project_id AS "projectId", p.name AS project, d.state, d.ref, d.commit,
          d.production, d.label, p.repo, p.framework, p.root_directory AS "rootDirectory",
          p.install_command AS "installCommand", p.build_command AS "buildCommand",
          p.output_directory AS "outputDirectory", p.spa_fallback AS "spaFallback", p.clean_urls AS "cleanUrls",
          p.build_network AS "buildNetwork", p.server_network AS "serverNetwork"
        FROM deployment d JOIN project p ON p.id = d.project_id WHERE d.id = ${deploymentId}`,
  )
  return build ?? null
}

/** The commit that the ref names, found late because the repository's host did not answer at first. */
export async function setCommit(db: Db, deploymentId: string, commit: string): Promise<void> {
  await rows(
    db,
    sql`WITH resolved AS (
          UPDATE deployment SET commit = ${commit} WHERE id = ${deploymentId} AND state = 'BUILDING' RETURNING project_id),
        told AS (${statusJobSql(deploymentId, sql`resolved`)})
        SELECT 1 FROM resolved`,
  )
}

/** The project's variables for a build, opened. */
export async function openVariables(db: Db, vault: Vault, build: Build): Promise<Record<string, string>> {
  const found = await db.variable.findMany({
    where: { projectId: build.projectId, target: { in: ['all', build.production ? 'production' : 'preview'] } },
  })
  return Object.fromEntries(found.map(({ key, sealed }) => [key, vault.open(sealed).toString()]))
}

/** What a build, and the server it makes, is told about itself. */
export function factsOf(config: Config, build: Build): Record<string, string> {
  return {
    BERTH_URL: edgeUrl(config, build.label),
    BERTH_COMMIT: build.commit,
    BERTH_REF: build.ref,
    BERTH_ENV: build.production ? 'production' : 'preview',
  }
}
