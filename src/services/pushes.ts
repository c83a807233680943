// A push, from its signature to its deployment: admitted by the hook's secret, taken once, superseding what still builds.
import { hash } from 'node:crypto'
import type { Static } from '@sinclair/typebox'
import type { Actor } from '../actor.ts'
import type { Config } from '../config.ts'
import { type Db, inTransaction, rows, sql } from '../db.ts'
import { Fault, invalidField } from '../errors.ts'
import { isRefName } from '../repositories.ts'
import type { PushResult as PushResultSchema, Push as PushSchema } from '../schemas/push-hooks.ts'
import type { Vault } from '../secrets.ts'
import { finishDeployment } from './deployment-states.ts'
import { createDeployment } from './deployments.ts'
import { findProject, type ProjectRow } from './projects.ts'
import { newHookSecret } from './push-hooks.ts'
import { isSigned, type PushHeaders } from './push-signatures.ts'

export type Push = Static<typeof PushSchema>
export type PushResult = Static<typeof PushResultSchema>

export type Admit = (projectId: string, headers: PushHeaders, texts: readonly Buffer[]) => Promise<Actor>

/**
 * Tells who may push to a project. A project that does not exist, one without a hook and a wrong signature get the same
 * refusal after the same work, so that nobody learns which projects there are.
 */
export function createPushGate(db: Db, vault: Vault): Admit {
  let made: Buffer | null = null
  return async (projectId, headers, texts) => {
    // Made for the first request and not before: whoever only describes the routes has no vault.
    made ??= vault.seal(newHookSecret())
    const decoy = made
    const [hook] = await rows<{
      accountId: string
      suspended: boolean
      secret: Uint8Array
      oldSecret: Uint8Array | null
    }>(
      db,
      sql`SELECT p.account_id AS "accountId", a.suspended_at IS NOT NULL AS suspended, h.secret,
            CASE WHEN h.old_secret_until > now() THEN h.old_secret END AS "oldSecret"
          FROM push_hook h JOIN project p ON p.id = h.project_id JOIN account a ON a.id = p.account_id
          WHERE h.project_id = ${/^prj_[0-9a-z]{24}$/.test(projectId) ? projectId : ''}`,
    )
    const secrets = [hook?.secret ?? decoy, hook?.oldSecret ?? decoy].map((sealed) => vault.open(sealed).toString())
    const signed = isSigned(headers, texts, secrets)
    if (!signed || !hook) throw new Fault('invalid_signature')
    if (hook.suspended) throw new Fault('account_suspended')
    return { accountId: hook.accountId, tokenId: 'system', scopes: [], projectIds: [projectId] }
  }
}

const zeros = /^0+$/

/** Why a push makes no deployment, or the branch of which it makes one. */
function branchOf(project: ProjectRow, push: Push): PushResult | { branch: string } {
  const none = (reason: PushResult['reason'], detail: string): PushResult => ({ deployment: null, reason, detail })
  const repo = push.repository?.full_name ?? push.project?.path_with_namespace ?? ''
  if (repo.toLowerCase() !== project.repo.toLowerCase()) {
    return none('other_repository', `The project ${project.name} is linked to ${project.repo}, not to this repository.`)
  }
  const branch = /^refs\/heads\/(.+)$/s.exec(push.ref)?.[1]
  if (branch === undefined) return none('not_a_branch', 'Only branches are deployed; tags are deployed by the API.')
  if (push.deleted || zeros.test(push.after)) return none('branch_deleted', 'The branch was deleted.')
  if (!isRefName(branch) || !branch.isWellFormed()) {
    throw invalidField('#/ref', 'bad_format', 'must be a branch name that git allows')
  }
  if (!project.autoDeploy) return none('auto_deploy_off', `autoDeploy is off for the project ${project.name}.`)
  return { branch }
}

/**
 * Makes the deployment of a push. What makes none leaves no trace, so that it can be sent again when the reason is gone.
 * `text` is what the host sent: the same text is taken once, also under another delivery id, which nothing signs.
 */
export async function takePush(
  db: Db,
  config: Config,
  actor: Actor,
  push: Push,
  text: Buffer,
  deliveryId: string | null,
): Promise<PushResult> {
  const projectId = actor.projectIds![0]!
  const digest = hash('sha256', text, 'buffer')
  const delivery = deliveryId ?? `sha256:${digest.toString('hex')}`
  return inTransaction(db, async (db) => {
    // The project before its hook, as every change of the two locks them: in another order they could lock each other.
    await rows(db, sql`SELECT 1 FROM project WHERE id = ${projectId} FOR KEY SHARE`)
    // Pushes of one project take turns: the later one must see the deployment of the earlier one to supersede it.
    const locked = await rows(db, sql`SELECT 1 FROM push_hook WHERE project_id = ${projectId} FOR UPDATE`)
    if (locked.length === 0) throw new Fault('invalid_signature')
    const project = await findProject(db, actor, projectId)
    const wanted = branchOf(project, push)
    if (!('branch' in wanted)) return wanted
    const { branch } = wanted
    const [known] = await rows<{ deploymentId: string }>(
      db,
      sql`SELECT deployment_id AS "deploymentId" FROM push
          WHERE project_id = ${projectId} AND (delivery = ${delivery} OR digest = ${digest})`,
    )
    if (known) {
      const detail = `This push was taken before, as ${known.deploymentId}.`
      return { deployment: known.deploymentId, reason: 'already_deployed', detail }
    }
    const superseded = await cancelSuperseded(db, config, projectId, branch)
    const production = branch === project.productionBranch
    const plan = { project, ref: branch, commit: push.after, production, source: 'push' } as const
    const { id } = await createDeployment(db, config, actor, plan)
    await rows(
      db,
      sql`WITH taken AS (
            INSERT INTO push (project_id, delivery, digest, deployment_id, created_at)
            VALUES (${projectId}, ${delivery}, ${digest}, ${id}, now()) RETURNING project_id)
          UPDATE push_hook h SET last_push_at = now() FROM taken WHERE h.project_id = taken.project_id
          RETURNING h.project_id`,
    )
    const where = production ? 'to production' : 'as a preview'
    const instead = superseded.length > 0 ? ` ${superseded.join(' and ')} was canceled for it.` : ''
    return { deployment: id, reason: 'deployed', detail: `${branch} is being deployed ${where}.${instead}` }
  })
}

/**
 * Ends the builds of earlier pushes to the branch; what a caller of the API asked for is left alone. One that somebody
 * has locked is ending this very moment: waiting for it, with the project locked, could be waiting for each other.
 */
async function cancelSuperseded(db: Db, config: Config, projectId: string, branch: string): Promise<string[]> {
  const building = await rows<{ id: string }>(
    db,
    sql`SELECT id FROM deployment
        WHERE project_id = ${projectId} AND ref = ${branch} AND source = 'push' AND state = 'BUILDING'
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`,
  )
  const canceled: string[] = []
  for (const { id } of building) {
    if (await finishDeployment(db, config, id, 'system', { to: 'CANCELED' })) canceled.push(id)
  }
  return canceled
}

/** A week is longer than any repository host goes on trying. */
export async function forgetOldPushes(db: Db): Promise<void> {
  await rows(db, sql`DELETE FROM push WHERE created_at < now() - interval '7 days' RETURNING delivery`)
}
