// The access of a project to its private repository: made, shown without its secret, and opened for those who fetch.
import type { Static } from '@sinclair/typebox'
import type { Project, RepositoryAccess } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault } from '../../platform/errors.ts'
import { badField, refuseFields, type Sound } from '../../platform/fields.ts'
import type { RepositoryAccess as OpenAccess } from '../../platform/git/git-remote.ts'
import type { Repositories } from '../../platform/git/repositories.ts'
import { originOf, overSsh, type RepositoryAddress } from '../../platform/git/repository-address.ts'
import { isHostKey, knownHostKeys, newDeployKey } from '../../platform/git/ssh-keys.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { placeOf, type Vault } from '../../platform/secrets/secrets.ts'
import { RepositoryAccess as AccessSchema, type PutRepositoryAccess } from '../../schemas/repository-access.ts'
import { append, eventOf } from '../events/index.ts'
import type { Actor } from '../identity/index.ts'
import { findProject, findProjectToChange, viewProject } from './projects.ts'

export type AccessView = Static<typeof AccessSchema>
type Put = Static<typeof PutRepositoryAccess>

const hostKeysOf = ({ kind, origin, hostKeys }: RepositoryAccess) =>
  hostKeys.length > 0 || kind === 'token' ? hostKeys : knownHostKeys(origin)

const viewRow = viewOf(AccessSchema)

function view(row: RepositoryAccess): AccessView {
  const hostKeys = hostKeysOf(row)
  const from = row.hostKeysSeen ? 'first_use' : row.hostKeys.length > 0 ? 'given' : 'built_in'
  return viewRow(row, { host: row.origin, hostKeys, hostKeysFrom: hostKeys.length > 0 ? from : null })
}

async function readAccess(db: Db, project: Project): Promise<RepositoryAccess> {
  const row = await db.repositoryAccess.findUnique({ where: { projectId: project.id } })
  if (!row) throw new Fault('not_found', `The project ${project.name} has no repository access.`)
  return row
}

export async function findRepositoryAccess(db: Db, actor: Actor, key: string): Promise<AccessView> {
  return view(await readAccess(db, await findProject(db, actor, key)))
}

/** What a schema cannot say: each kind has its own fields. */
export function checkRepositoryAccess({ kind, token, username, hostKeys, newKey }: Sound<Put>): void {
  const errors = hostKeys?.flatMap((key, index) =>
    key === undefined || isHostKey(key)
      ? []
      : badField(`#/hostKeys/${index}`, 'bad_format', 'must be a host key of the type named before it'),
  )
  const other = (field: string, value: unknown, of: string) =>
    value === undefined ? [] : badField(`#/${field}`, 'not_allowed', `is only allowed with kind ${of}`)
  if (kind === 'token') {
    const missing = token === undefined ? [badField('#/token', 'required', 'is required with kind token')] : []
    refuseFields(
      [missing, other('hostKeys', hostKeys, 'deploy_key'), other('newKey', newKey || undefined, 'deploy_key')].flat(),
    )
  } else if (kind === 'deploy_key') {
    refuseFields([errors ?? [], other('token', token, 'token'), other('username', username, 'token')].flat())
  } else refuseFields(errors ?? [])
}

export type AccessTools = { urls: Urls; vault: Vault; repositories: Pick<Repositories, 'addressOf'> }
export type AccessChange = { key: string; precondition(view: AccessView | null): void }

// As they document it; the others take any name with a token.
const tokenUsers: Record<string, string> = { 'bitbucket.org': 'x-token-auth' }

/** The token is always sent along, and belongs to the host of now: nobody can turn it to another address later. */
export async function putRepositoryAccess(
  db: Db,
  { urls, vault, repositories }: AccessTools,
  actor: Actor,
  { key, input, precondition }: AccessChange & { input: Put },
): Promise<AccessView> {
  checkRepositoryAccess(input)
  return inTransaction(db, async (db) => {
    const project = await findProjectToChange(db, actor, key)
    const before = await db.repositoryAccess.findUnique({ where: { projectId: project.id } })
    precondition(before && view(before))
    const address = repositories.addressOf(project.repo)
    if (!address)
      refuseFields([
        badField('#/kind', 'not_allowed', `${project.repo} needs no repository access on this installation`),
      ])
    const data = { ...grantOf(vault, { project, before, address: address!, input }), updatedAt: new Date() }
    const row = await db.repositoryAccess.upsert({
      where: { projectId: project.id },
      create: { projectId: project.id, createdAt: data.updatedAt, ...data },
      update: data,
    })
    await logChange(db, urls, actor, project)
    return view(row)
  })
}

type Asked = { project: Project; before: RepositoryAccess | null; address: RepositoryAddress; input: Put }

function grantOf(
  vault: Vault,
  { project, before, address, input }: Asked,
): Omit<RepositoryAccess, 'projectId' | 'createdAt' | 'updatedAt'> {
  const seal = (secret: string) => Uint8Array.from(vault.seal(secret, placeOf.repositoryAccess(project.id)))
  const { kind } = input
  if (kind === 'token') {
    if (address.protocol === 'ssh:') {
      const detail = `needs an HTTPS URL, but the repository is ${project.repo}; use a deploy key, or change the URL`
      refuseFields([badField('#/kind', 'not_allowed', detail)])
    }
    const username = input.username ?? tokenUsers[address.hostname] ?? 'x-access-token'
    const secret = seal(input.token!)
    return { kind, origin: originOf(address), username, secret, publicKey: null, hostKeys: [], hostKeysSeen: false }
  }
  const origin = originOf(overSsh(address))
  const kept = before?.kind === kind && before.origin === origin && !input.newKey ? before : null
  const made = kept ? null : newDeployKey(`berth-${project.name}`)
  return {
    ...{ kind, origin, username: null },
    secret: kept?.secret ?? seal(made!.privateKey),
    publicKey: kept?.publicKey ?? made!.publicKey,
    hostKeys: input.hostKeys ?? [],
    hostKeysSeen: false,
  }
}

export async function deleteRepositoryAccess(
  db: Db,
  urls: Urls,
  actor: Actor,
  { key, precondition }: AccessChange,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const project = await findProjectToChange(db, actor, key)
    precondition(view(await readAccess(db, project)))
    await db.repositoryAccess.delete({ where: { projectId: project.id } })
    await logChange(db, urls, actor, project)
  })
}

/** How a project is cloned is part of it, so the log tells of it as a change of the project. */
async function logChange(db: Db, urls: Urls, actor: Actor, project: Project): Promise<void> {
  const data = viewProject(urls, project)
  await append(db, [eventOf(actor, 'project.updated', { subject: project.id, projectId: project.id, data })])
}

/**
 * The access for those who fetch; called for the system, not for a caller. Another kind of access, such as the token of an
 * app that a host makes for an hour, is another kind of row that is turned into one of these two here.
 */
export async function openAccess(db: Db, vault: Vault, projectId: string): Promise<OpenAccess | null> {
  const row = await db.repositoryAccess.findUnique({ where: { projectId } })
  if (!row) return null
  const { origin, secret, updatedAt } = row
  const opened = vault.open(secret, placeOf.repositoryAccess(projectId)).toString()
  if (row.kind === 'token') return { kind: 'token', origin, username: row.username ?? '', token: opened }
  return {
    kind: 'deploy_key',
    origin,
    privateKey: opened,
    hostKeys: hostKeysOf(row),
    async learned(hostKeys) {
      // Of two who see the host first, one decides; what was put meanwhile stays.
      const where = { projectId, updatedAt, hostKeys: { isEmpty: true } }
      await db.repositoryAccess.updateMany({ where, data: { hostKeys, hostKeysSeen: true } })
    },
  }
}
