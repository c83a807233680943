// Push hooks: the secret that a repository host signs pushes with, and where commit statuses are posted.
import { randomInt } from 'node:crypto'
import type { Static } from '@sinclair/typebox'
import type { Actor } from '../actor.ts'
import type { Config } from '../config.ts'
import { type Db, inTransaction, rows, sql } from '../db.ts'
import { Fault, invalidField } from '../errors.ts'
import type {
  PushHook as PushHookSchema,
  PutCommitStatusTarget,
  PushHookWithSecret as WithSecretSchema,
} from '../schemas/push-hooks.ts'
import type { Vault } from '../secrets.ts'
import { append, eventOf } from './events.ts'
import { findProject, type ProjectRow, viewProject } from './projects.ts'
import { targetRefusal } from './webhook-targets.ts'

export type PushHookView = Static<typeof PushHookSchema>
export type PushHookWithSecret = Static<typeof WithSecretSchema>

type Provider = NonNullable<PushHookView['commitStatus']>['provider']

type PushHookRow = {
  projectId: string
  lastPushAt: Date | null
  statusProvider: Provider | null
  statusApiUrl: string | null
  statusPostedAt: Date | null
  statusError: string | null
  createdAt: Date
  updatedAt: Date
}

const columns = sql`h.project_id AS "projectId", h.last_push_at AS "lastPushAt",
  h.status_provider AS "statusProvider", h.status_api_url AS "statusApiUrl", h.status_posted_at AS "statusPostedAt",
  h.status_error AS "statusError", h.created_at AS "createdAt", h.updated_at AS "updatedAt"`

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Letters and digits only, so that no field, shell or file into which it is pasted changes it; 238 random bits. */
export function newHookSecret(): string {
  return `brh_${Array.from({ length: 40 }, () => base62[randomInt(62)]).join('')}`
}

function view(config: Config, row: PushHookRow): PushHookView {
  return {
    url: `${config.baseUrl}/hooks/git/${row.projectId}`,
    lastPushAt: row.lastPushAt?.toISOString() ?? null,
    commitStatus: row.statusProvider && {
      provider: row.statusProvider,
      apiUrl: row.statusApiUrl ?? '',
      postedAt: row.statusPostedAt?.toISOString() ?? null,
      error: row.statusError,
    },
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  }
}

async function readHook(db: Db, project: ProjectRow, lock = false): Promise<PushHookRow> {
  const [row] = await rows<PushHookRow>(
    db,
    sql`SELECT ${columns} FROM push_hook h WHERE h.project_id = ${project.id} ${lock ? sql`FOR UPDATE` : sql``}`,
  )
  if (!row) throw new Fault('not_found', `The project ${project.name} has no push hook.`)
  return row
}

/** The secret of a hook is part of how its project is deployed, so the log tells of it as a change of the project. */
async function logChange(db: Db, config: Config, actor: Actor, project: ProjectRow): Promise<void> {
  await append(db, [eventOf(actor, 'project.updated', project.id, project.id, viewProject(config, project))])
}

export async function findPushHook(db: Db, config: Config, actor: Actor, key: string): Promise<PushHookView> {
  return view(config, await readHook(db, await findProject(db, actor, key)))
}

/** Makes the hook, or gives it another secret; the one that is replaced works on for the overlap. */
export async function createPushHook(
  db: Db,
  config: Config,
  vault: Vault,
  actor: Actor,
  key: string,
  overlapSeconds: number,
): Promise<PushHookWithSecret> {
  const secret = newHookSecret()
  return inTransaction(db, async (db) => {
    const project = await findProject(db, actor, key, true)
    const now = new Date()
    const [row] = await rows<PushHookRow>(
      db,
      sql`INSERT INTO push_hook AS h (project_id, secret, created_at, updated_at)
          VALUES (${project.id}, ${vault.seal(secret)}, ${now}::timestamptz, ${now}::timestamptz)
          ON CONFLICT (project_id) DO UPDATE SET secret = excluded.secret, updated_at = excluded.updated_at,
            old_secret = CASE WHEN ${overlapSeconds}::int > 0 THEN h.secret END,
            old_secret_until = CASE WHEN ${overlapSeconds}::int > 0
              THEN now() + ${overlapSeconds}::int * interval '1 second' END
          RETURNING ${columns}`,
    )
    await logChange(db, config, actor, project)
    return { ...view(config, row!), secret }
  })
}

/** Pushes are refused from now on. The token for statuses goes too. */
export async function deletePushHook(
  db: Db,
  config: Config,
  actor: Actor,
  key: string,
  precondition: (view: PushHookView) => void,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const project = await findProject(db, actor, key, true)
    precondition(view(config, await readHook(db, project, true)))
    await db.pushHook.delete({ where: { projectId: project.id } })
    await logChange(db, config, actor, project)
  })
}

/** The address under which `/repos/…/statuses/…` is found: as it was written, without what would double a slash. */
function apiUrlOf(config: Config, input: Static<typeof PutCommitStatusTarget>): string {
  if (input.apiUrl === undefined && input.provider !== 'github') {
    throw invalidField('#/apiUrl', 'required', 'is required for gitea, such as https://git.example.com/api/v1')
  }
  const given = (input.apiUrl ?? 'https://api.github.com').replace(/\/+$/, '')
  const refusal = targetRefusal(given, config)
  if (refusal) throw invalidField('#/apiUrl', 'bad_url', refusal)
  // Gitea and Forgejo have their API at one place, so the address of the instance will do.
  return input.provider === 'gitea' && !given.endsWith('/api/v1') ? `${given}/api/v1` : given
}

/** The token is always sent along: nobody can turn a token that is stored here to another address. */
export async function putCommitStatusTarget(
  db: Db,
  config: Config,
  vault: Vault,
  actor: Actor,
  key: string,
  input: Static<typeof PutCommitStatusTarget>,
): Promise<PushHookView> {
  return inTransaction(db, async (db) => {
    const project = await findProject(db, actor, key, true)
    await readHook(db, project, true)
    const [row] = await rows<PushHookRow>(
      db,
      sql`UPDATE push_hook h SET status_provider = ${input.provider}, status_api_url = ${apiUrlOf(config, input)},
            status_token = ${vault.seal(input.token)}, status_posted_at = NULL, status_error = NULL,
            updated_at = ${new Date()}::timestamptz
          WHERE h.project_id = ${project.id} RETURNING ${columns}`,
    )
    await logChange(db, config, actor, project)
    return view(config, row!)
  })
}

export async function deleteCommitStatusTarget(db: Db, config: Config, actor: Actor, key: string): Promise<void> {
  await inTransaction(db, async (db) => {
    const project = await findProject(db, actor, key, true)
    const { statusProvider } = await readHook(db, project, true)
    if (!statusProvider) throw new Fault('not_found', `The project ${project.name} posts no commit statuses.`)
    await rows(
      db,
      sql`UPDATE push_hook SET status_provider = NULL, status_api_url = NULL, status_token = NULL,
            status_posted_at = NULL, status_error = NULL, updated_at = ${new Date()}::timestamptz
          WHERE project_id = ${project.id} RETURNING project_id`,
    )
    await logChange(db, config, actor, project)
  })
}
