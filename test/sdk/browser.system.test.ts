// The SDK in a browser, on a page of another origin.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'
import { expect, test } from 'vitest'
import { sharedApi } from '../helpers/api.ts'

const executablePath = findChromium()

function findChromium(): string | null {
  try {
    return execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim()
  } catch {
    if (process.env.BERTH_REQUIRE_PEERS === '1') throw new Error('chromium is not installed')
    return null
  }
}

const script = `
  const { baseUrl, token } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)))
  const berth = sdk.createBerth({ baseUrl, token })
  window.result = (async () => {
    const { events } = await berth.get('/events', { params: { query: { limit: 1 } } })
    const ticket = await berth.post('/tickets', { body: { subject: 'From a page', message: 'Hello' } })
    const { response } = await berth.raw.GET('/tickets/{id}', { params: { path: { id: ticket.id } } })
    const refused = await berth.get('/tickets/{id}', { params: { path: { id: 'tkt_nope' } } }).catch((error) => error)
    for await (const event of berth.events({}, { lastEventId: events[0].id })) {
      return [ticket.status, response.headers.get('etag') !== null, refused.code, event.type, event.subject === ticket.id]
    }
  })()
`

test.skipIf(!executablePath)(
  'a page of another origin uses it all',
  async () => {
    const api = await sharedApi()
    const options = { bundle: true, platform: 'browser', format: 'iife', globalName: 'sdk', write: false } as const
    const { outputFiles } = await build({ entryPoints: ['sdk/src/index.ts'], ...options })
    const html = `<!doctype html><title>Page</title><script>${outputFiles[0]!.text}${script}</script>`
    const pages = createServer((_request, response) => response.setHeader('content-type', 'text/html').end(html))
    await once(pages.listen(0, '127.0.0.1'), 'listening')
    const browser = await chromium.launch({ executablePath: executablePath!, args: ['--no-sandbox'] })
    try {
      const baseUrl = `${await api.listen()}/api`
      const page = await browser.newPage()
      const given = new URLSearchParams({ baseUrl, token: api.token })
      await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/#${given}`)
      const result = await page.evaluate('window.result')
      expect(result).toEqual(['OPEN', true, 'not_found', 'ticket.created', true])
    } finally {
      await browser.close()
      pages.close()
      await api.stop()
    }
  },
  120_000,
)
