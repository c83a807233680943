// Push hooks: the secret with which a repository host signs pushes, and the target of commit statuses.
import { randomInt } from 'node:crypto'
import type { Static } from '@sinclair/typebox'
import type { Project, PushHook } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault, invalidField } from '../../platform/errors.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { placeOf, type Vault } from '../../platform/secrets/secrets.ts'
import {
  PushHook as PushHookSchema,
  type PutCommitStatusTarget,
  type PushHookWithSecret as WithSecretSchema,
} from '../../schemas/push-hooks.ts'
import { append, eventOf } from '../events/index.ts'
import type { Actor } from '../identity/index.ts'
import { findProject, findProjectToChange, viewProject } from '../projects/index.ts'
import { type TargetRules, targetRefusal } from '../webhooks/index.ts'
import { lockHook } from './statements.ts'

export type PushHookView = Static<typeof PushHookSchema>
export type PushHookWithSecret = Static<typeof WithSecretSchema>

type Provider = NonNullable<PushHookView['commitStatus']>['provider']

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** 238 random bits in letters and digits only, so pasting it into a form, shell or file can't alter it. */
export function newHookSecret(prefix: 'brh' | 'brd' = 'brh'): string {
  return `${prefix}_${Array.from({ length: 40 }, () => base62[randomInt(62)]).join('')}`
}

const viewRow = viewOf(PushHookSchema)

function view(urls: Urls, row: PushHook): PushHookView {
  return viewRow(row, {
    url: urls.push(row.projectId),
    commitStatus: row.statusProvider
      ? {
          provider: row.statusProvider as Provider,
          apiUrl: row.statusApiUrl ?? '',
          postedAt: row.statusPostedAt?.toISOString() ?? null,
          error: row.statusError,
        }
      : null,
  })
}

async function readHook(db: Db, project: Project): Promise<PushHook> {
  const row = await db.pushHook.findUnique({ where: { projectId: project.id } })
  if (!row) throw new Fault('not_found', `The project ${project.name} has no push hook.`)
  return row
}

/** Like `readHook`, but locks the hook until the transaction ends. The project must be locked already. */
async function readHookToChange(db: Db, project: Project): Promise<PushHook> {
  await lockHook(db, { projectId: project.id })
  return readHook(db, project)
}

/** Records a change of a hook as a change of its project: hooks are part of how a project is deployed. */
export async function logChange(db: Db, urls: Urls, actor: Actor, project: Project): Promise<void> {
  await append(db, [
    eventOf(actor, 'project.updated', { subject: project.id, projectId: project.id, data: viewProject(urls, project) }),
  ])
}

export async function findPushHook(db: Db, urls: Urls, actor: Actor, key: string): Promise<PushHookView> {
  return view(urls, await readHook(db, await findProject(db, actor, key)))
}

export type HookTools = { urls: Urls; vault: Vault }

const sealed = (vault: Vault, secret: string, place: string) => Uint8Array.from(vault.seal(secret, place))

/** Creates the hook or replaces its secret. The old secret stays valid during the overlap. */
export async function createPushHook(
  db: Db,
  { urls, vault }: HookTools,
  actor: Actor,
  { key, overlapSeconds }: { key: string; overlapSeconds: number },
): Promise<PushHookWithSecret> {
  const secret = newHookSecret()
  return inTransaction(db, async (db) => {
    const project = await findProjectToChange(db, actor, key)
    const projectId = project.id
    const before = await db.pushHook.findUnique({ where: { projectId }, select: { secret: true } })
    const now = new Date()
    const data = { secret: sealed(vault, secret, placeOf.pushHook(projectId)), updatedAt: now }
    const overlaps = before !== null && overlapSeconds > 0
    const row = await db.pushHook.upsert({
      where: { projectId },
      create: { ...data, projectId, createdAt: now },
      update: {
        ...data,
        oldSecret: overlaps ? before.secret : null,
        oldSecretUntil: overlaps ? new Date(now.getTime() + overlapSeconds * 1000) : null,
      },
    })
    await logChange(db, urls, actor, project)
    return { ...view(urls, row), secret }
  })
}

/** `key` identifies the project. The precondition covers the hook and its commit status target. */
type HookChange = { key: string; precondition(view: PushHookView): void }

/** Deletes the hook with its commit status token. From now on, pushes are refused. */
export async function deletePushHook(
  db: Db,
  urls: Urls,
  actor: Actor,
  { key, precondition }: HookChange,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const project = await findProjectToChange(db, actor, key)
    precondition(view(urls, await readHookToChange(db, project)))
    await db.pushHook.delete({ where: { projectId: project.id } })
    await logChange(db, urls, actor, project)
  })
}

/** Returns the base URL of the host's API, without a trailing slash. */
export function apiUrlOf(
  rules: TargetRules,
  input: Pick<Static<typeof PutCommitStatusTarget>, 'provider' | 'apiUrl'>,
): string {
  const { provider } = input
  const defaults = { github: 'https://api.github.com', gitlab: 'https://gitlab.com/api/v4', gitea: undefined }
  const apiUrl = (input.apiUrl ?? defaults[provider])?.replace(/\/+$/, '')
  if (apiUrl === undefined) {
    throw invalidField('#/apiUrl', 'required', 'is required for gitea, such as https://git.example.com/api/v1')
  }
  const refusal = targetRefusal(apiUrl, rules)
  if (refusal) throw invalidField('#/apiUrl', 'bad_url', refusal)
  // GitLab, Gitea and Forgejo have a fixed API path, so the URL of the instance is enough.
  const path = { github: '', gitlab: '/api/v4', gitea: '/api/v1' }[provider]
  return apiUrl.endsWith(path) ? apiUrl : `${apiUrl}${path}`
}

/** The input always includes the token, so nobody can redirect a stored token to another URL. */
export async function putCommitStatusTarget(
  db: Db,
  { urls, vault, rules }: HookTools & { rules: TargetRules },
  actor: Actor,
  { key, input, precondition }: HookChange & { input: Static<typeof PutCommitStatusTarget> },
): Promise<PushHookView> {
  return inTransaction(db, async (db) => {
    const project = await findProjectToChange(db, actor, key)
    precondition(view(urls, await readHookToChange(db, project)))
    const row = await db.pushHook.update({
      where: { projectId: project.id },
      data: {
        statusProvider: input.provider,
        statusApiUrl: apiUrlOf(rules, input),
        statusToken: sealed(vault, input.token, placeOf.statusToken(project.id)),
        statusPostedAt: null,
        statusError: null,
        updatedAt: new Date(),
      },
    })
    await logChange(db, urls, actor, project)
    return view(urls, row)
  })
}

export async function deleteCommitStatusTarget(
  db: Db,
  urls: Urls,
  actor: Actor,
  { key, precondition }: HookChange,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const project = await findProjectToChange(db, actor, key)
    const hook = await readHookToChange(db, project)
    precondition(view(urls, hook))
    if (!hook.statusProvider) throw new Fault('not_found', `The project ${project.name} does not post commit statuses.`)
    await db.pushHook.update({
      where: { projectId: project.id },
      data: {
        statusProvider: null,
        statusApiUrl: null,
        statusToken: null,
        statusPostedAt: null,
        statusError: null,
        updatedAt: new Date(),
      },
    })
    await logChange(db, urls, actor, project)
  })
}
