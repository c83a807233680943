// Signed links to protected previews, for one deployment and a limited time. They are not stored.
import type { Static } from '@sinclair/typebox'
import type { Db } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import type { Urls } from '../../platform/http/urls.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import type { DeploymentShare, ShareDeployment } from '../../schemas/deployments.ts'
import type { Actor } from '../identity/index.ts'
import { shareParameter, signPass } from '../projects/index.ts'
import { findDeployment } from './deployments.ts'

const defaultSeconds = 24 * 60 * 60

export async function shareDeployment(
  db: Db,
  { urls, vault }: { urls: Urls; vault: Vault },
  actor: Actor,
  { id, expiresIn = defaultSeconds }: { id: string } & Static<typeof ShareDeployment>,
): Promise<Static<typeof DeploymentShare>> {
  const { state, label, projectId } = await findDeployment(db, actor, id)
  if (state !== 'READY') throw new Fault('deployment_not_ready', `The deployment is ${state}, not READY.`)
  const { previewProtection, previewVersion } = await db.project.findFirstOrThrow({
    where: { id: projectId, accountId: actor.accountId },
    select: { previewProtection: true, previewVersion: true },
  })
  if (previewProtection === 'none') throw new Fault('preview_not_protected')
  const expiresMs = (Math.floor(Date.now() / 1000) + expiresIn) * 1000
  const url = new URL(urls.deployment(label))
  const key = { projectId, version: previewVersion }
  url.searchParams.set(shareParameter, signPass(vault, 'link', key, { scope: id, expiresMs }))
  return { url: url.href, expiresAt: new Date(expiresMs).toISOString() }
}
