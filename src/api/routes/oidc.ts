// /projects/{project}/oidc: whose tokens are trusted; and outside /api, where CI exchanges them for short-lived ones.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { createReach } from '../../platform/http/checked-lookup.ts'
import { clientOf } from '../../platform/http/client-address.ts'
import { createIssuerKeys, readToken } from '../../platform/secrets/issuer-keys.ts'
import { Named } from '../../schemas/common.ts'
import { ExchangedToken, ExchangeOidcToken, OidcTrust, PutOidcTrust } from '../../schemas/oidc.ts'
import { ProjectParams } from '../../schemas/projects.ts'
import {
  checkOidcTrust,
  deleteOidcTrust,
  exchange,
  findOidcTrust,
  findTrusts,
  putOidcTrust,
} from '../../services/oidc/index.ts'
import type { Deps } from '../http/deps.ts'
import { refuseUnexpectedBody } from '../http/requests/json-bodies.ts'
import { requireHttps, shedLoad } from '../http/requests/transport.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { createRateLimit, tooMany } from '../http/shares/rate-limit.ts'
import { boundOpenPerAddress } from '../http/shares/shares.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

export const oidcTrustRoutes: RoutePlugin = async (app, { deps }) => {
  const { db, urls, config, tokenDirectory } = deps
  const checks = { production: config.production, reach: createReach(config) }

  app.get(
    '/projects/:project/oidc',
    {
      config: { scope: 'projects:read' },
      schema: {
        operationId: 'getOidcTrust',
        tags: ['Projects'],
        summary: 'Read whose tokens are trusted',
        description:
          'The issuer, the audience and the claims of the tokens that are exchanged for those of the project.',
        params: ProjectParams,
        response: { 200: Named(OidcTrust) },
      },
    },
    async (request, reply) =>
      sendSingle(request, reply, await findOidcTrust(db, request.actor, request.params.project)),
  )

  app.put(
    '/projects/:project/oidc',
    {
      config: {
        scope: 'projects:write',
        meaning: (_request: unknown, body: SoundBody<typeof PutOidcTrust>) => checkOidcTrust(body, checks),
      },
      schema: {
        operationId: 'putOidcTrust',
        tags: ['Projects'],
        summary: 'Trust the tokens of an issuer',
        description:
          'Lets CI deploy without a stored secret: `POST /auth/oidc/token` exchanges a token of the issuer that has these ' +
          'claims for one of this project. The caller must have the scopes that are granted. Tokens that were exchanged ' +
          'before end.',
        params: ProjectParams,
        body: PutOidcTrust,
        response: { 200: Named(OidcTrust) },
      },
    },
    async (request) => {
      const change = { key: request.params.project, input: request.body, precondition: precondition(request) }
      const trust = await putOidcTrust(db, { urls, checks }, request.actor, change)
      tokenDirectory.forgetAccount(request.actor.accountId)
      return trust
    },
  )

  app.delete(
    '/projects/:project/oidc',
    {
      config: { scope: 'projects:write' },
      schema: {
        operationId: 'deleteOidcTrust',
        tags: ['Projects'],
        summary: 'Trust no issuer',
        description: 'No token is exchanged any more, and those that were exchanged end.',
        params: ProjectParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const { project: key } = request.params
      await deleteOidcTrust(db, urls, request.actor, { key, precondition: precondition(request) })
      tokenDirectory.forgetAccount(request.actor.accountId)
      return reply.code(204).send(null)
    },
  )
}

const attemptsPerMinute = 60
const maxInFlight = 100
const maxOpenPerAddress = 25

/** Without a Berth token: the caller shows one from its issuer. */
export const oidcExchangeRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db, config, sharedLimits: limits } = deps
  const keys = createIssuerKeys(config, createReach(config))
  const attempts = createRateLimit(attemptsPerMinute, limits && { limits, kind: 'oidc' })
  shedLoad(app, Math.min(config.maxInFlight, maxInFlight))
  boundOpenPerAddress(app, maxOpenPerAddress, maxInFlight)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    requireHttps(request)
  })
  app.addHook('preValidation', async (request) => refuseUnexpectedBody(request.routeOptions.schema, request.body))

  app.post(
    '/auth/oidc/token',
    {
      config: {
        faults: [
          'invalid_request',
          'invalid_json',
          'oidc_token_refused',
          'account_suspended',
          'https_required',
          'body_too_large',
          'unsupported_media_type',
          'validation_failed',
          'rate_limited',
          'internal_error',
          'identity_provider_unavailable',
          'overloaded',
          'database_unavailable',
        ],
      },
      schema: {
        operationId: 'exchangeOidcToken',
        tags: ['Projects'],
        summary: 'Exchange a token of CI for one of a project',
        description:
          'Takes a token of OpenID Connect, signed with RS256 or ES256 by an issuer that the project trusts, once. The ' +
          'answer is a token of 15 minutes that is narrowed to the project.',
        body: ExchangeOidcToken,
        response: { 200: Named(ExchangedToken) },
      },
      preParsing: async (request) => {
        const { exceeded, resetSeconds } = await attempts.take(clientOf(request.ip))
        if (exceeded) throw tooMany(`More than ${attemptsPerMinute} exchanges in a minute.`, resetSeconds)
      },
    },
    async (request) => {
      const token = readToken(request.body.token)
      const trusts = await findTrusts(db, { project: request.body.project, issuer: token.claims.iss })
      return exchange(db, trusts, token, await keys.verify(token))
    },
  )
}
