import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withCatalogue } from '../../../src/api/http/responses/error-catalogue.ts'
import { faults } from '../../../src/platform/errors.ts'
import { quotaNames, quotas } from '../../../src/schemas/quotas.ts'
import { tokenScopes } from '../../../src/schemas/tokens.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

const open = (url: string) => api.app.inject({ url })
const guide = (name: string) => readFileSync(`docs/guides/${name}.md`, 'utf8')

/** Every page that one gets to from another, by its address. */
async function walk(start: string): Promise<Map<string, { status: number; text: string }>> {
  const pages = new Map<string, { status: number; text: string }>()
  const queue = [start]
  for (let url = queue.shift(); url !== undefined; url = queue.shift()) {
    if (pages.has(url)) continue
    const { statusCode, body } = await open(url)
    pages.set(url, { status: statusCode, text: body })
    if (!/^\/(docs\/guides\/|changelog)/.test(url)) continue
    for (const [, href] of body.matchAll(/<a href="([^"]+)"/g)) {
      const { origin, pathname } = new URL(href!, `http://berth${url}`)
      if (origin === 'http://berth') queue.push(pathname)
    }
  }
  return pages
}

describe('the guides', () => {
  test('lead to one another, to the reference and to the changelog, and no link is dead', async () => {
    const pages = await walk('/docs/guides/')
    expect([...pages].filter(([, { status }]) => status !== 200).map(([url]) => url)).toEqual([])
    const subjects = ['first-deploy', 'authentication', 'pagination', 'idempotency', 'errors', 'webhooks', 'streams']
    for (const name of [...subjects, 'versions', 'limits']) {
      expect(pages.get(`/docs/guides/${name}`)?.text).toMatch(/<h1 id="[^"]+">.*<title>|<title>.* · Berth<\/title>/s)
    }
    expect([...pages.keys()]).toEqual(expect.arrayContaining(['/docs/', '/changelog', '/errors']))
    expect(pages.get('/changelog')?.text).toContain('<h2 id="unreleased">Unreleased</h2>')
    expect(pages.get('/docs/guides/limits')?.text).toContain('<td><code>recordsPerZone</code></td>')
  })

  test('are reached without the slash, and are the only files that are', async () => {
    expect(await open('/docs/guides')).toMatchObject({ statusCode: 301, headers: { location: '/docs/guides/' } })
    for (const name of [
      'nope',
      'README',
      'errors.md',
      '..%2fproduction',
      '..%2f..%2fpackage.json',
      '__proto__',
      '%00',
    ]) {
      const { statusCode, body } = await open(`/docs/guides/${name}`)
      expect([name, statusCode, JSON.parse(body).code]).toEqual([name, 404, 'route_not_found'])
    }
  })

  test('are found from the first page, and are kept by browsers until they change', async () => {
    expect(JSON.parse((await open('/')).body)).toMatchObject({ guides: '/docs/guides', changelog: '/changelog' })
    for (const url of ['/docs/guides/', '/docs/guides/limits', '/changelog']) {
      const { etag } = (await open(url)).headers
      const again = await api.app.inject({ url, headers: { 'if-none-match': String(etag) } })
      expect([url, again.statusCode, again.body]).toEqual([url, 304, ''])
    }
  })

  test('name every error code as the catalogue has it', () => {
    const page = guide('errors')
    expect(page).toBe(withCatalogue(page))
    for (const code of Object.keys(faults)) expect(page).toContain(`| \`${code}\` |`)
    expect(() => withCatalogue('# Errors')).toThrow('has no line')
  })

  test('name every quota with its default, and every scope', () => {
    const limits = guide('limits')
    for (const name of quotaNames) expect(limits).toContain(`| \`${name}\` | ${quotas[name].max} |`)
    const scopes = guide('authentication')
    for (const scope of tokenScopes.filter((one) => one !== 'events:write')) expect(scopes).toContain(`\`${scope}\``)
  })
})
