// The interactive reference: a page and its script, both served from here.
import Fastify from 'fastify'
import { etagOfText } from '../../platform/http/etags.ts'
import type { Document } from './worker.ts'

/** The script has 4 MB. Everything comes from this server, so the page works without internet access. */
export async function openReference(): Promise<Document[]> {
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
  const read = async (path: string): Promise<Document> => {
    const { headers, rawPayload } = await pages.inject({ url: path })
    return { path, type: String(headers['content-type']), content: rawPayload }
  }
  const [page, script] = [await read('/docs/'), await read('/docs/js/scalar.js')]
  await pages.close()
  const hash = etagOfText(script.content).slice(1, 11)
  const html = String(page.content).replace('js/scalar.js', `js/scalar.js?v=${hash}`)
  return [
    { ...page, content: html },
    { ...script, caching: 'for ever' },
  ]
}
