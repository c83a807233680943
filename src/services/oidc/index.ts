// Trust in OIDC tokens of CI systems and other issuers, and their exchange for short-lived project tokens.
import type { Static } from '@sinclair/typebox'
import type { OidcTrust, Project } from '../../generated/client.ts'
import { deleteInBatches } from '../../platform/batches.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault } from '../../platform/errors.ts'
import { badField, refuseFields, type Sound } from '../../platform/fields.ts'
import type { Reach } from '../../platform/http/checked-lookup.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { type Claims, idOf, issuerRefusal, type ReadToken } from '../../platform/secrets/issuer-keys.ts'
import { type ExchangedToken, OidcTrust as OidcTrustSchema, type PutOidcTrust } from '../../schemas/oidc.ts'
import { append, eventOf } from '../events/index.ts'
import { type Actor, allows } from '../identity/index.ts'
import { findProject, findProjectToChange, viewProject, withKey } from '../projects/index.ts'
import { insertToken, requireScopes, viewToken, withNames } from '../tokens/index.ts'

export type OidcTrustView = Static<typeof OidcTrustSchema>
type Put = Static<typeof PutOidcTrust>

const lifeMs = 15 * 60_000
const defaultScopes: OidcTrustView['scopes'] = ['projects:read', 'deployments:write']

// Without one of them, everybody's jobs at the issuer would be trusted.
const identifyingClaims = [
  ...['sub', 'repository', 'repository_id', 'repository_owner', 'repository_owner_id'],
  ...['project_path', 'project_id', 'namespace_path', 'namespace_id'],
]

const viewOfTrust = viewOf(OidcTrustSchema)
const view = (row: OidcTrust): OidcTrustView => viewOfTrust(row, { claims: row.claims as OidcTrustView['claims'] })

export type IssuerChecks = { production: boolean; reach: Pick<Reach, 'mayReach'> }

/** Checks what the schema can't express. */
export function checkOidcTrust({ issuer, claims }: Sound<Put>, { production, reach }: IssuerChecks): void {
  const refusal = issuer === undefined ? null : issuerRefusal(issuer, { production }, reach)
  const isOpen = claims !== undefined && !identifyingClaims.some((name) => Object.hasOwn(claims, name))
  refuseFields([
    ...(refusal ? [badField('#/issuer', 'bad_url', refusal)] : []),
    ...(isOpen
      ? [badField('#/claims', 'required', `must include at least one of ${identifyingClaims.join(', ')}`)]
      : []),
  ])
}

async function readTrust(db: Db, project: Project): Promise<OidcTrust> {
  const row = await db.oidcTrust.findUnique({ where: { projectId: project.id } })
  if (!row) throw new Fault('not_found', `The project ${project.name} has no OIDC trust.`)
  return row
}

export async function findOidcTrust(db: Db, actor: Actor, key: string): Promise<OidcTrustView> {
  return view(await readTrust(db, await findProject(db, actor, key)))
}

type TrustChange = { key: string; precondition(view: OidcTrustView | null): void }

/** Sets the trust, with no more scopes than the actor has. Revokes tokens exchanged under the previous trust. */
export async function putOidcTrust(
  db: Db,
  { urls, checks }: { urls: Urls; checks: IssuerChecks },
  actor: Actor,
  { key, input, precondition }: TrustChange & { input: Put },
): Promise<OidcTrustView> {
  checkOidcTrust(input, checks)
  const { issuer, claims, audience = urls.api } = input
  const scopes = input.scopes ?? defaultScopes.filter((scope) => allows(actor.scopes, scope))
  requireScopes(actor, scopes, 'grant it')
  return inTransaction(db, async (db) => {
    const project = await findProjectToChange(db, actor, key)
    const before = await db.oidcTrust.findUnique({ where: { projectId: project.id } })
    precondition(before && view(before))
    if (before) await revokeExchanged(db, actor, project)
    const data = { issuer, claims, audience, scopes: [...scopes], updatedAt: new Date() }
    const row = await db.oidcTrust.upsert({
      where: { projectId: project.id },
      create: { projectId: project.id, createdAt: data.updatedAt, ...data },
      update: data,
    })
    await logChange(db, urls, actor, project)
    return view(row)
  })
}

export async function deleteOidcTrust(db: Db, urls: Urls, actor: Actor, { key, precondition }: TrustChange) {
  return inTransaction(db, async (db) => {
    const project = await findProjectToChange(db, actor, key)
    precondition(view(await readTrust(db, project)))
    await revokeExchanged(db, actor, project)
    await db.oidcTrust.delete({ where: { projectId: project.id } })
    await logChange(db, urls, actor, project)
  })
}

async function logChange(db: Db, urls: Urls, actor: Actor, project: Project): Promise<void> {
  const data = viewProject(urls, project)
  await append(db, [eventOf(actor, 'project.updated', { subject: project.id, projectId: project.id, data })])
}

/** Revokes the live exchanged tokens; the events make every server drop them from its cache. */
async function revokeExchanged(db: Db, actor: Actor, { id: projectId }: Project): Promise<void> {
  const uses = await db.oidcUse.findMany({ where: { projectId }, select: { tokenId: true } })
  const live = { id: { in: uses.map(({ tokenId }) => tokenId) }, revokedAt: null, expiresAt: { gt: new Date() } }
  const rows = await withNames(db, await db.token.findMany({ where: live }))
  await db.token.updateMany({ where: { id: { in: rows.map(({ id }) => id) } }, data: { revokedAt: new Date() } })
  const events = rows.map((row) => ({ subject: row.id, projectId: null, data: viewToken(row) }))
  await append(
    db,
    events.map((event) => eventOf(actor, 'token.revoked', event)),
  )
}

export type Trust = OidcTrust & { project: Project }

const refused = () =>
  new Fault(
    'oidc_token_refused',
    'No project with this name or id trusts this token. Compare its iss, aud and claims with GET /projects/{project}/oidc.',
  )

/** Finds the projects of any account with that name or id that trust the issuer. Only trusted issuers are contacted. */
export async function findTrusts(db: Db, { project, issuer }: { project: string; issuer: string }): Promise<Trust[]> {
  const found = await db.oidcTrust.findMany({
    where: { issuer, project: withKey(project) },
    include: { project: true },
    take: 100,
  })
  if (found.length === 0) throw refused()
  return found
}

function isMatch({ audience, claims }: OidcTrust, given: Claims): boolean {
  if (![given.aud].flat().includes(audience)) return false
  return Object.entries(claims as Record<string, string>).every(([name, expected]) => {
    const value = Object.hasOwn(given, name) ? given[name] : undefined
    return ['string', 'number', 'boolean'].includes(typeof value) && String(value) === expected
  })
}

/** Creates the short-lived token; `claims` are those of the verified OIDC token. */
export async function exchange(
  db: Db,
  trusts: Trust[],
  token: ReadToken,
  claims: Claims,
): Promise<Static<typeof ExchangedToken>> {
  const [trust, ...others] = trusts.filter((trust) => isMatch(trust, claims))
  if (!trust) throw refused()
  // Two accounts may have projects of the same name; neither may get a token meant for the other.
  if (others.length > 0)
    throw new Fault(
      'oidc_token_refused',
      'Several projects with this name trust the token. Send the project id instead.',
    )
  const { project } = trust
  return inTransaction(db, async (db) => {
    const actor: Actor = { accountId: project.accountId, tokenId: 'system', scopes: [], projectIds: [project.id] }
    await findProjectToChange(db, actor, project.id)
    const now = await db.oidcTrust.findUnique({ where: { projectId: project.id } })
    if (now?.updatedAt.getTime() !== trust.updatedAt.getTime()) throw refused()
    const account = await db.account.findUnique({ where: { id: project.accountId } })
    if (!account || account.suspendedAt) throw new Fault('account_suspended')
    const scopes = trust.scopes as OidcTrustView['scopes']
    const expiresAt = new Date(Date.now() + lifeMs)
    const name = `OIDC: ${String(claims.sub ?? trust.issuer).replace(/\p{Cc}/gu, ' ')}`.slice(0, 100)
    const grant = { accountId: project.accountId, name, scopes, projectIds: [project.id], expiresAt, hidden: true }
    const { id: tokenId, secret } = await insertToken(db, grant)
    const use = { issuer: trust.issuer, jti: idOf(token), projectId: project.id, tokenId }
    const data = [{ ...use, expiresAt: new Date((claims.exp + 3600) * 1000) }]
    const { count } = await db.oidcUse.createMany({ data, skipDuplicates: true })
    if (count === 0)
      throw new Fault('oidc_token_refused', 'The token was already exchanged. Request a new one from the issuer.')
    const [row] = await withNames(db, await db.token.findMany({ where: { id: tokenId } }))
    const event = { subject: tokenId, projectId: null, data: viewToken(row!) }
    await append(db, [eventOf(actor, 'token.created', event)])
    return { token: secret, expiresAt: expiresAt.toISOString(), project: project.name, projectId: project.id, scopes }
  })
}

/** Deletes exchanges of expired tokens and returns their number. */
export function deleteOldExchanges(db: Db, signal?: AbortSignal): Promise<number> {
  const where = { expiresAt: { lt: new Date() } }
  return deleteInBatches(signal, (limit) => db.oidcUse.deleteMany({ where, limit }))
}
