// The interactive reference: a page and its script, from this server alone.
import Fastify from 'fastify'
import { type PublicAnswer, publicAnswer } from './public-answers.ts'

export type Reference = { page: PublicAnswer; script: PublicAnswer }

/**
 * The script has 4 MB, so it is loaded for its first reader. Everything the page needs comes from this server: it works
 * without any other network.
 */
export async function openReference(): Promise<Reference> {
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
  const read = async (url: string) => {
    const { headers, rawPayload } = await pages.inject({ url })
    return { type: String(headers['content-type']), content: rawPayload }
  }
  const [page, script] = [await read('/docs/'), await read('/docs/js/scalar.js')]
  await pages.close()
  const file = publicAnswer(script.type, script.content, 'for ever')
  const html = page.content.toString().replace('js/scalar.js', `js/scalar.js?v=${file.etag.slice(1, 11)}`)
  return { page: publicAnswer(page.type, html), script: file }
}
