// /projects/{project}/hook: the push hook and its commit statuses.
import { Named } from '../../schemas/common.ts'
import { ProjectParams } from '../../schemas/projects.ts'
import { CreatePushHook, PushHook, PushHookWithSecret, PutCommitStatusTarget } from '../../schemas/push-hooks.ts'
import {
  apiUrlOf,
  createPushHook,
  createPushVerifier,
  deleteCommitStatusTarget,
  deletePushHook,
  deliveryOfPush,
  eventOfPush,
  findPushHook,
  putCommitStatusTarget,
  readPullRequestEvent,
  receivePullRequest,
  receivePush,
  requireSignatureHeaders,
} from '../../services/pushes/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

export const pushHookRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, urls, vault, config } = deps

  app.get(
    '/projects/:project/hook',
    {
      config: { scope: 'projects:read' },
      schema: {
        operationId: 'getPushHook',
        tags: ['Projects'],
        summary: 'Read the push hook',
        description: 'Its address, when a push last came in and how commit statuses are doing, without any secret.',
        params: ProjectParams,
        response: { 200: Named(PushHook) },
      },
    },
    async (request, reply) =>
      sendSingle(request, reply, await findPushHook(db, urls, request.actor, request.params.project)),
  )

  app.post(
    '/projects/:project/hook',
    {
      config: { scope: 'projects:write' },
      schema: {
        operationId: 'createPushHook',
        tags: ['Projects'],
        summary: 'Make the push hook, or give it a new secret',
        description:
          'The answer holds the address and the secret to enter at GitHub, GitLab, Gitea or Forgejo; the secret is ' +
          'never shown again. A secret that is replaced works on for `overlapSeconds`, not at all if left out.',
        params: ProjectParams,
        body: CreatePushHook,
        response: { 201: Named(PushHookWithSecret) },
      },
    },
    (request, reply) => {
      const { project } = request.params
      const overlapSeconds = request.body?.overlapSeconds ?? 0
      return once(request, reply, {
        status: 201,
        work: (db) => createPushHook(db, { urls, vault }, request.actor, { key: project, overlapSeconds }),
        location: () => `/projects/${project}/hook`,
        shown: ({ secret: _secret, ...hook }) => hook,
      })
    },
  )

  app.delete(
    '/projects/:project/hook',
    {
      config: { scope: 'projects:write' },
      schema: {
        operationId: 'deletePushHook',
        tags: ['Projects'],
        summary: 'Delete the push hook',
        description: 'Pushes are refused from now on, and commits get no status.',
        params: ProjectParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const { project: key } = request.params
      await deletePushHook(db, urls, request.actor, { key, precondition: precondition(request) })
      return reply.code(204).send(null)
    },
  )

  app.put(
    '/projects/:project/hook/status',
    {
      config: {
        scope: 'projects:write',
        meaning: (_request: unknown, { provider, apiUrl }: SoundBody<typeof PutCommitStatusTarget>) =>
          provider === undefined ? null : apiUrlOf(config, { provider, apiUrl }),
      },
      schema: {
        operationId: 'putCommitStatusTarget',
        tags: ['Projects'],
        summary: 'Post commit statuses',
        description:
          'From now on the repository host is told of each deployment as it is made and as it ends, as the status ' +
          '`berth/<project>/production` or `berth/<project>/preview` of its commit. The token must be allowed to ' +
          'write commit statuses; it is sealed at rest and never returned.',
        params: ProjectParams,
        body: PutCommitStatusTarget,
        response: { 200: Named(PushHook) },
      },
    },
    (request) => {
      const change = { key: request.params.project, input: request.body, precondition: precondition(request) }
      return putCommitStatusTarget(db, { urls, vault, rules: config }, request.actor, change)
    },
  )

  app.delete(
    '/projects/:project/hook/status',
    {
      config: { scope: 'projects:write' },
      schema: {
        operationId: 'deleteCommitStatusTarget',
        tags: ['Projects'],
        summary: 'Post no commit statuses',
        description: 'Forgets the token of the repository host.',
        params: ProjectParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const { project: key } = request.params
      await deleteCommitStatusTarget(db, urls, request.actor, { key, precondition: precondition(request) })
      return reply.code(204).send(null)
    },
  )
}

const pushLimitBytes = 1024 * 1024
// Each request may hold a body of a megabyte before its sender is verified; no address may have all of them.
const maxInFlight = 100
const maxOpenPerAddress = 25
const pushesPerMinute = 60

const tooManyPushes = (resetSeconds: number) =>
  tooMany(`More than ${pushesPerMinute} pushes in a minute.`, resetSeconds)

/** Bounds what lies deep in it: who signs a push is known, but may be hostile. */
async function readJson(text: Buffer): Promise<unknown> {
  try {
    return await parseJson(text)
  } catch (error) {
    if (error instanceof Fault) throw error
    throw new Fault('invalid_json', 'The push is not valid JSON.', { cause: error })
  }
}

/** The JSON payload: the body, or its field `payload` if the hook is configured to send a form. */
function payloadOf(request: FastifyRequest, raw: Buffer): Buffer {
  if (!request.headers['content-type']?.startsWith('application/x-www-form-urlencoded')) return raw
  return Buffer.from(payloadOfForm(raw.toString()))
}

/** The only route without a token: a push is verified by its signature before it is parsed. */
export const gitHookRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db, urls, config, vault, repositories, sharedLimits: limits } = deps
  const keepHours = config.retention.deletedBranchHours
  const options = { urls, repositories, vault, region: config.region, keepHours }
  const admit = createPushVerifier(db, vault)
  const pushesPerProject = createRateLimit(pushesPerMinute, limits && { limits, kind: 'push' })
  shedLoad(app, Math.min(config.maxInFlight, maxInFlight))
  boundOpenPerAddress(app, maxOpenPerAddress, maxInFlight)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    requireHttps(request)
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    ['application/json', 'application/x-www-form-urlencoded'],
    { parseAs: 'buffer', bodyLimit: pushLimitBytes },
    (request, raw: Buffer, done) => {
      request.rawBody = raw
      done(null)
    },
  )

  app.post(
    '/hooks/git/:project',
    {
      config: {
        faults: [
          'invalid_request',
          'invalid_json',
          'invalid_signature',
          'account_suspended',
          'https_required',
          'body_too_large',
          'unsupported_media_type',
          'validation_failed',
          'rate_limited',
          'internal_error',
          'overloaded',
          'database_unavailable',
        ],
      },
      bodyLimit: pushLimitBytes,
      schema: {
        operationId: 'receivePush',
        tags: ['Projects'],
        summary: 'Receive a push',
        description:
          'Called by GitHub (`X-Hub-Signature-256`), GitLab (`X-Gitlab-Token`), Gitea and Forgejo ' +
          '(`X-Gitea-Signature`, `X-Forgejo-Signature`), as JSON or as a form. A push to the production branch is ' +
          'deployed to production, one to another branch as a preview; earlier pushes to the branch that still build ' +
          'are canceled, unless it names a commit that the repository does not have. One that deletes a branch cancels all ' +
          'of its builds, and its previews are deleted some time after, unless it is pushed again. A pull or merge request ' +
          'from the same repository is deployed as a preview of its branch, one from a fork only once its commit is ' +
          'approved. Tags and other events make nothing, nor does what was taken within a week.',
        params: PushParams,
        body: Push,
        response: { 200: Named(PushResult), 202: Named(PushResult) },
      },
      preParsing: async (request) => {
        const { project } = request.params as { project: string }
        requireSignatureHeaders(project, request.headers)
        if (pushesPerProject.isUsedUp(project)) throw tooManyPushes(pushesPerProject.resetSeconds(project))
      },
      preValidation: async (request, reply) => {
        const raw = request.rawBody ?? Buffer.alloc(0)
        const text = payloadOf(request, raw)
        const { project } = request.params as { project: string }
        request.actor = await admit(project, request.headers, text === raw ? [raw] : [raw, text])
        const event = eventOfPush(request.headers)
        if (event === 'ping') {
          const detail = 'The hook works. The next push will be deployed.'
          return reply.code(200).send({ deployment: null, reason: 'ping', detail })
        }
        if (typeof event === 'object') {
          const detail = `Only pushes and pull requests are deployed. The event ${event.other} is ignored.`
          return reply.code(202).send({ deployment: null, reason: 'other_event', detail })
        }
        const { exceeded, resetSeconds } = await pushesPerProject.take(project)
        if (exceeded) throw tooManyPushes(resetSeconds)
        if (event === 'pull_request') {
          // Each host has a form of its own, which is not that of a push.
          const received = {
            event: readPullRequestEvent(await readJson(text)),
            text,
            deliveryId: deliveryOfPush(request.headers),
          }
          return reply.code(202).send(await receivePullRequest(db, options, request.actor, received))
        }
        request.rawBody = text
        request.body = (await readJson(text)) as never
      },
    },
    async (request, reply) => {
      reply.code(202)
      return receivePush(db, options, request.actor, {
        push: request.body,
        text: request.rawBody!,
        deliveryId: deliveryOfPush(request.headers),
      })
    },
  )
}
