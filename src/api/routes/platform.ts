// Outside /api: health, the reference, openapi and the pages that explain each error code.
import Fastify, { type FastifyInstance, type FastifyPluginAsync } from 'fastify'
import { Fault, type FaultCode, faults } from '../../platform/errors.ts'
import type { Deps } from '../deps.ts'
import { yamlOf } from '../http/openapi.ts'
import { statuses } from '../http/problem.ts'
import { boundOpenPerAddress } from '../http/shares.ts'
import { guideRoutes } from './guides.ts'

const hidden = { schema: { hide: true } } as const

// Pages for everybody are large, and an answer takes memory until it is read.
const maxOpenPages = 200
const maxOpenPagesPerAddress = 20

export const platformRoutes: FastifyPluginAsync<{ deps: Deps }> = async (app, { deps }) => {
  app.get('/healthz', hidden, async () => ({ status: 'ok' }))

  app.get<{ Querystring: { role?: string } }>('/readyz', hidden, async (request, reply) => {
    const { role } = request.query
    const report = await deps.health.look(role === undefined ? undefined : String(role))
    return reply.code(report.status === 'unavailable' ? 503 : 200).send(report)
  })

  await app.register(pages)
}

const pages: FastifyPluginAsync = async (app) => {
  boundOpenPerAddress(app, maxOpenPagesPerAddress, maxOpenPages)
  await app.register(guideRoutes)
  let json = ''
  app.get('/openapi.json', hidden, async (_request, reply) => {
    json ||= JSON.stringify(app.swagger())
    return reply.type('application/json').send(json)
  })
  app.get('/openapi.yaml', hidden, async (_request, reply) => reply.type('application/yaml').send(yamlOf(app)))

  let reference: Promise<FastifyInstance> | null = null
  app.get('/docs', hidden, async (_request, reply) => reply.redirect('/docs/', 301))
  app.get('/docs/*', hidden, async (request, reply) => {
    reference ??= openReference()
    const page = await (await reference).inject({ url: request.url })
    return reply.code(page.statusCode).type(String(page.headers['content-type'])).send(page.rawPayload)
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
    const rows = `<p>Code <code>${code}</code>, HTTP status ${status}</p><h2>Cause</h2><p>${html(cause)}</p><h2>Cure</h2><p>${html(cure)}</p>`
    return reply.type('text/html; charset=utf-8').send(page(title, `${rows}<p><a href="/errors">All codes</a></p>`))
  })
}

/**
 * The interactive reference. It is 4 MB of script that take 26 MB of memory, so it is loaded for its first reader.
 * Everything the page needs comes from this server: it works without any other network.
 */
async function openReference(): Promise<FastifyInstance> {
  const { default: reference } = await import('@scalar/fastify-api-reference')
  const pages = Fastify()
  await pages.register(reference, {
    routePrefix: '/docs',
    configuration: {
      url: '/openapi.json',
      pageTitle: 'Berth API reference',
      withDefaultFonts: false,
      telemetry: false,
      hideClientButton: true,
      showDeveloperTools: 'never',
      authentication: { preferredSecurityScheme: 'bearer' },
      agent: { disabled: true },
      mcp: { disabled: true },
    } as never,
  })
  return pages
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
