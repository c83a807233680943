// /tokens: list, create, read the current one, narrow, rotate, revoke.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Named } from '../../schemas/common.ts'
import {
  ChangeToken,
  CreateToken,
  RotateToken,
  Token,
  TokenList,
  TokenParams,
  TokenQuery,
  TokenWithSecret,
} from '../../schemas/tokens.ts'
import {
  changeToken,
  checkToken,
  checkTokenChange,
  createToken,
  findOwnToken,
  findToken,
  listTokens,
  revokeToken,
  rotateToken,
  versionOf,
} from '../../services/tokens/index.ts'
import { deprecatedToken, withoutSecret } from '../http/responses/deprecation.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

const reads = { scope: 'tokens:read', accountWide: true } as const
const writes = { scope: 'tokens:write', accountWide: true } as const
type NewToken = Awaited<ReturnType<typeof createToken>>

export const tokenRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, tokenDirectory } = deps
  const show = (request: FastifyRequest, reply: FastifyReply, token: Parameters<typeof versionOf>[0]) =>
    sendSingle(request, reply, token, versionOf(token))
  const created = {
    status: 201,
    location: ({ id }: NewToken) => `/tokens/${id}`,
    shown: (token: NewToken) => versionOf(withoutSecret(token)),
  }

  app.get(
    '/tokens',
    {
      config: reads,
      schema: {
        operationId: 'listTokens',
        tags: ['Tokens'],
        summary: 'List tokens',
        description: 'The live tokens of the account, newest first, without their secrets.',
        querystring: TokenQuery,
        response: { 200: Named(TokenList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'tokens')
      return sendPage(request, reply, page, { tokens: await listTokens(db, request.actor, page) })
    },
  )

  app.post(
    '/tokens',
    {
      config: {
        scope: 'tokens:write',
        inZoneParts: true,
        deprecated: deprecatedToken,
        meaning: ({ actor }, body: SoundBody<typeof CreateToken>) => checkToken(db, actor, body),
      },
      schema: {
        operationId: 'createToken',
        tags: ['Tokens'],
        summary: 'Create a token',
        description:
          'Makes a token with the calling token’s access or less, which ends with it at the latest: when the calling token ' +
          'expires, or when it is revoked. The secret is in this answer and nowhere else.',
        body: CreateToken,
        response: { 201: Named(TokenWithSecret) },
      },
    },
    (request, reply) =>
      once(request, reply, { ...created, work: (db) => createToken(db, request.actor, request.body) }),
  )

  app.get(
    '/tokens/current',
    {
      config: { scope: null, inZoneParts: true },
      schema: {
        operationId: 'getCurrentToken',
        tags: ['Tokens'],
        summary: 'Read the calling token',
        description: 'Scopes, projects, zones and expiry of the token that sends the request.',
        response: { 200: Named(Token) },
      },
    },
    async (request, reply) => show(request, reply, await findOwnToken(db, request.actor)),
  )

  app.get(
    '/tokens/:id',
    {
      config: reads,
      schema: {
        operationId: 'getToken',
        tags: ['Tokens'],
        summary: 'Read a token',
        description: 'Scopes, projects, expiry and last use of a live token.',
        params: TokenParams,
        response: { 200: Named(Token) },
      },
    },
    async (request, reply) => show(request, reply, await findToken(db, request.actor, request.params.id)),
  )

  app.patch(
    '/tokens/:id',
    {
      config: {
        ...writes,
        meaning: ({ actor, params }, body: SoundBody<typeof ChangeToken>) =>
          checkTokenChange(db, actor, (params as { id: string }).id, body),
      },
      schema: {
        operationId: 'changeToken',
        tags: ['Tokens'],
        summary: 'Rename or narrow a token',
        description:
          'Changes the name, or gives the token an earlier expiry, fewer scopes, fewer projects or smaller parts of ' +
          'zones: never more than it has. What the tokens that it made have beyond that, they lose too, and one that is ' +
          'left with nothing is revoked. Takes effect as a revocation does. The calling token needs every scope of the changed one.',
        params: TokenParams,
        body: ChangeToken,
        response: { 200: Named(Token) },
      },
    },
    async (request, reply) => {
      const change = { id: request.params.id, input: request.body, precondition: precondition(request) }
      const token = await changeToken(db, request.actor, change)
      tokenDirectory.forgetAccount(request.actor.accountId)
      return show(request, reply, token)
    },
  )

  app.delete(
    '/tokens/:id',
    {
      config: writes,
      schema: {
        operationId: 'revokeToken',
        tags: ['Tokens'],
        summary: 'Revoke a token',
        description:
          'Takes effect at once on this server and within a second on every other. All tokens of its lineage are revoked with it ' +
          '(the one that replaced it by its own request, and so on), and all that any of them created. A successor that another ' +
          'token asked for, such as one of the owner, stays. A token that was replaced without an overlap can be revoked as well, ' +
          'by another token, while anything that came from it lives. The calling token needs every scope of the revoked ones.',
        params: TokenParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      await revokeToken(db, request.actor, request.params.id, precondition(request))
      tokenDirectory.forgetAccount(request.actor.accountId)
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/tokens/:id/rotate',
    {
      config: { ...writes, deprecated: deprecatedToken, faults: ['token_outlives_caller'] },
      schema: {
        operationId: 'rotateToken',
        tags: ['Tokens'],
        summary: 'Rotate a token',
        description:
          'Makes a new token with the same access and the same expiry; the old one works on for `overlapSeconds`, then no more. The ' +
          'tokens that the old one made go on as those of the new one, unless `revokeChildren` is set, as it should be after a leak. ' +
          'The calling token needs every scope of the old one and must not expire before it. If the old one is neither the calling ' +
          'token nor made by it, the new one becomes its child. If the calling token is the old one, or came from it, both are one ' +
          'lineage and are revoked together.',
        params: TokenParams,
        body: RotateToken,
        response: { 201: Named(TokenWithSecret) },
      },
    },
    async (request, reply) => {
      const token = await once(request, reply, {
        ...created,
        work: (db) => rotateToken(db, request.actor, request.params.id, request.body ?? {}),
      })
      tokenDirectory.forgetAccount(request.actor.accountId)
      return token
    },
  )
}
