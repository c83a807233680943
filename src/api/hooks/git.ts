// /hooks/git/{project}: receives pushes and pull requests, verified by their signature before they are parsed.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Fault } from '../../platform/errors.ts'
import { parseJson } from '../../platform/http/json-pieces.ts'
import { Named } from '../../schemas/common.ts'
import { Push, PushParams, PushResult } from '../../schemas/push-hooks.ts'
import {
  createPushVerifier,
  deliveryOfPush,
  eventOfPush,
  payloadOfForm,
  readPullRequestEvent,
  receivePullRequest,
  receivePush,
  requireSignatureHeaders,
} from '../../services/pushes/index.ts'
import type { Deps } from '../http/deps.ts'
import { createRateLimit, tooMany } from '../http/shares/rate-limit.ts'
import { protectHook } from './protect.ts'

const bodyLimitBytes = 1024 * 1024
const pushesPerMinute = 60

const tooManyPushes = (resetSeconds: number) =>
  tooMany(`More than ${pushesPerMinute} pushes in a minute.`, resetSeconds)

/** Limits the nesting, because even the sender of a signed push may be hostile. */
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

export const gitHookRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db, urls, config, vault, repositories, sharedLimits: limits } = deps
  const keepHours = config.retention.deletedBranchHours
  const options = { urls, repositories, vault, region: config.region, keepHours }
  const admit = createPushVerifier(db, vault)
  const pushesPerProject = createRateLimit(pushesPerMinute, limits && { limits, kind: 'push' })
  protectHook(app, config.maxInFlight)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    ['application/json', 'application/x-www-form-urlencoded'],
    { parseAs: 'buffer', bodyLimit: bodyLimitBytes },
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
      bodyLimit: bodyLimitBytes,
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
