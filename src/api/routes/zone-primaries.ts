// /dns/{domain}/secondary: the external primary that a zone follows.
import type { Static } from '@sinclair/typebox'
import { Named } from '../../schemas/common.ts'
import { ZoneParams } from '../../schemas/dns-records.ts'
import { PutZonePrimary, ZonePrimary } from '../../schemas/zone-primaries.ts'
import { checkPrimary, deletePrimary, findPrimary, primaryVersion, putPrimary } from '../../services/dns/index.ts'
import { precondition, sendLive } from '../http/responses/etag.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

export const zonePrimaryRoutes: RoutePlugin = async (app, { deps }) => {
  const { db, vault } = deps
  const allowPrivate = !deps.config.production

  app.get(
    '/dns/:domain/secondary',
    {
      config: { scope: 'dns:read' },
      schema: {
        operationId: 'getZonePrimary',
        tags: ['DNS'],
        summary: 'Read the primary of a zone',
        description: 'The nameserver elsewhere that the zone follows, and what was last seen of it.',
        params: ZoneParams,
        response: { 200: Named(ZonePrimary) },
      },
    },
    async (request, reply) => {
      const view = await findPrimary(db, request.actor, request.params.domain)
      return sendLive(request, reply, view, primaryVersion(view))
    },
  )

  app.put(
    '/dns/:domain/secondary',
    {
      config: {
        scope: 'dns:write',
        showsVersion: true,
        meaning: ({ actor, params }, body: SoundBody<typeof PutZonePrimary>) =>
          checkPrimary(db, actor, (params as Static<typeof ZoneParams>).domain, { input: body, allowPrivate }),
      },
      schema: {
        operationId: 'putZonePrimary',
        tags: ['DNS'],
        summary: 'Follow a primary',
        description:
          'Makes the zone a secondary of a nameserver elsewhere. Its records become what that one has, by AXFR, at once ' +
          'and whenever it says so (NOTIFY) or its SOA record is looked at again. SOA and the NS records of the domain ' +
          'itself stay those of this service, and so do signatures. Meanwhile its records cannot be changed here. A ' +
          'version that a zone here cannot have is told in `error`, and the one before stays.',
        params: ZoneParams,
        body: PutZonePrimary,
        response: { 200: Named(ZonePrimary) },
      },
    },
    async (request, reply) => {
      const { actor, params, body: input } = request
      const change = { input, vault, allowPrivate, precondition: precondition(request) }
      const view = await putPrimary(db, actor, params.domain, change)
      return sendLive(request, reply, view, primaryVersion(view))
    },
  )

  app.delete(
    '/dns/:domain/secondary',
    {
      config: { scope: 'dns:write' },
      schema: {
        operationId: 'deleteZonePrimary',
        tags: ['DNS'],
        summary: 'Stop following a primary',
        description: 'The records stay as they are, and can be changed here again.',
        params: ZoneParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      await deletePrimary(db, request.actor, request.params.domain, precondition(request))
      return reply.code(204).send(null)
    },
  )
}
