// /docs/guides and /changelog: pages for people.
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../platform/errors.ts'
import { openDocuments } from '../documents/documents.ts'
import { sendPublic } from '../http/responses/public-responses.ts'

const hidden = { schema: { hide: true } } as const

export const guideRoutes: FastifyPluginAsync = async (app) => {
  async function send(request: FastifyRequest, reply: FastifyReply) {
    const page = (await openDocuments('guides')).get(request.url.split('?', 1)[0]!)
    if (!page) throw new Fault('route_not_found', 'There is no such guide.')
    return sendPublic(request, reply, page)
  }

  app.get('/docs/guides', hidden, async (_request, reply) => reply.redirect('/docs/guides/', 301))
  app.get('/docs/guides/:name', hidden, send)
  app.get('/changelog', hidden, send)
}
