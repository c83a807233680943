// Outside /api: health, the reference, openapi.yaml, and a page for each error code.
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { Fault, type FaultCode, faults } from '../../platform/errors.ts'
import { version } from '../../platform/version.ts'
import { openDocuments } from '../documents/documents.ts'
import type { Deps } from '../http/deps.ts'
import { addVary } from '../http/responses/compression.ts'
import { statuses } from '../http/responses/problem.ts'
import { sendPublic } from '../http/responses/public-responses.ts'
import { apiVersion } from '../http/responses/versions.ts'
import { boundOpenPerAddress } from '../http/shares/shares.ts'
import { commandLineRoutes } from './command-line.ts'
import { type Console, consoleRoutes, readConsole, sendConsole, wantsPage } from './console.ts'
import { guideRoutes } from './guides.ts'

const hidden = { schema: { hide: true } } as const

// Public pages are large, and a response takes memory until it is read.
const maxOpenPages = 200
const maxOpenPagesPerAddress = 20

/** The links of the start page. */
const index = {
  name: 'Berth',
  version,
  apiVersion,
  api: '/api',
  docs: '/docs',
  cli: '/cli',
  guides: '/docs/guides',
  openapi: '/openapi.yaml',
  errors: '/errors',
  changelog: '/changelog',
  health: '/healthz',
}

export const platformRoutes: FastifyPluginAsync<{ deps: Deps }> = async (app, { deps }) => {
  app.get('/healthz', hidden, async () => ({ status: 'ok' }))

  app.get<{ Querystring: { role?: string } }>('/readyz', hidden, async (request, reply) => {
    const { role } = request.query
    const report = await deps.health.check(role === undefined ? undefined : String(role))
    return reply.code(report.status === 'unavailable' ? 503 : 200).send(report)
  })

  const built = await readConsole(deps.consoleDirectory)
  await app.register(consoleRoutes, { built })
  await app.register(pages, { built, deps })
}

const pages: FastifyPluginAsync<{ built: Console | null; deps: Deps }> = async (app, { built, deps }) => {
  boundOpenPerAddress(app, maxOpenPagesPerAddress, maxOpenPages)
  await app.register(guideRoutes)
  await app.register(commandLineRoutes, { baseUrl: deps.config.baseUrl, file: deps.commandLineFile })
  const send = (kind: 'openapi' | 'reference') => async (request: FastifyRequest, reply: FastifyReply) =>
    sendPublic(request, reply, (await openDocuments(kind)).get(request.routeOptions.url!)!)
  app.get('/openapi.json', hidden, send('openapi'))
  app.get('/openapi.yaml', hidden, send('openapi'))
  app.get('/docs', hidden, async (_request, reply) => reply.redirect('/docs/', 301))
  app.get('/docs/', hidden, send('reference'))
  app.get('/docs/js/scalar.js', hidden, send('reference'))

  app.get('/', hidden, async (request, reply) => {
    addVary(reply, 'Accept')
    if (!wantsPage(request)) return reply.send(index)
    if (built) return sendConsole(request, reply, built)
    const links = [index.docs, index.guides, index.openapi, index.errors, index.changelog, index.health].map(
      (path) => `<li><a href="${path}">${path}</a></li>`,
    )
    const body = `<p>The API is at <code>${index.api}</code>, version ${apiVersion}.</p><ul>${links.join('')}</ul>`
    return reply.type('text/html; charset=utf-8').send(page('Berth', body))
  })

  app.get('/errors', hidden, async (_request, reply) => {
    const items = Object.keys(faults).map(
      (code) => `<li><a href="/errors/${code}">${code}</a>: ${faults[code as FaultCode].title}</li>`,
    )
    return reply.type('text/html; charset=utf-8').send(page('Error codes', `<ul>${items.join('')}</ul>`))
  })

  app.get<{ Params: { code: string } }>('/errors/:code', hidden, async (request, reply) => {
    const { code } = request.params
    if (!Object.hasOwn(faults, code)) throw new Fault('route_not_found', 'There is no such error code.')
    const { title, cause, cure } = faults[code as FaultCode]
    const status = statuses[code as FaultCode]
    if (/json/.test(request.headers.accept ?? '')) return reply.send({ code, status, title, cause, cure })
    const rows = `<p>Code <code>${code}</code>, HTTP status ${status}</p><h2>Cause</h2><p>${html(cause)}</p><h2>Fix</h2><p>${html(cure)}</p>`
    return reply.type('text/html; charset=utf-8').send(page(title, `${rows}<p><a href="/errors">All codes</a></p>`))
  })
}

// The catalogue marks code with backticks.
function html(text: string): string {
  return text.replaceAll('<', '&lt;').replace(/`([^`]+)`/g, '<code>$1</code>')
}

function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title} · Berth</title>
<style>body{font:16px/1.6 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem}</style>
<h1>${title}</h1>${body}</html>\n`
}
