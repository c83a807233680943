// How the console is served: its policy, its sizes, its files for ever, and what else answers at its addresses.
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildParts } from '../../../build/parts.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'"

let directory: string
let api: TestApi
beforeAll(async () => {
  directory = (await buildParts(['console'])).console
  api = await startApi({}, { consoleDirectory: directory })
})
afterAll(() => api?.stop())

const get = (url: string, headers: Record<string, string> = { accept: 'text/html,*/*;q=0.8' }) =>
  api.app.inject({ url, headers })

describe('the page', () => {
  test('is at every address of the console, with its policy', async () => {
    for (const url of ['/', '/projects/docs/settings', '/dns/example.com', '/sign-in', '/setup', '/operator/nodes']) {
      const { statusCode, headers, body } = await get(url)
      expect(statusCode).toBe(200)
      expect(headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': policy,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cache-control': 'public, no-cache',
      })
      expect(headers['permissions-policy']).toContain('camera=()')
      expect(body).toContain('<div id="app">')
      // Nothing inline.
      expect(body).not.toMatch(/<style|style=|<script(?![^>]* src=)| on\w+=/)
    }
  })

  test('is not what programs get', async () => {
    const index = await get('/', { accept: 'application/json' })
    expect(JSON.parse(index.body)).toMatchObject({ name: 'Berth', api: '/api' })
    expect((await get('/', {})).headers['content-type']).toContain('json')
    expect((await get('/projects/docs', { accept: 'application/json' })).statusCode).toBe(404)
    expect((await get('/docs/guides/')).body).not.toContain('<div id="app">')
    expect((await get('/nothing-here')).statusCode).toBe(404)
  })

  test('has files that are kept for ever, compressed at build', async () => {
    const { body } = await get('/')
    const files = [...body.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, path]) => path!)
    expect(files.length).toBeGreaterThan(2)
    for (const path of files) {
      const plain = await get(path, {})
      const { headers, rawPayload } = await get(path, { 'accept-encoding': 'gzip' })
      expect(headers).toMatchObject({
        'cache-control': 'public, max-age=31536000, immutable',
        'content-encoding': 'gzip',
        'x-content-type-options': 'nosniff',
      })
      expect(gunzipSync(rawPayload).equals(plain.rawPayload)).toBe(true)
      expect(rawPayload.equals(await readFile(join(directory, `${path}.gz`)))).toBe(true)
      expect((await get(path, { 'accept-encoding': 'br, gzip' })).headers['content-encoding']).toBe('br')
    }
    for (const path of ['/assets/', '/assets/none.js', '/assets/..%2findex.html', '/assets/%2e%2e/index.html']) {
      expect((await get(path)).statusCode).toBe(404)
    }
  })
})

test('is small: at most 80 KiB gzip, and 40 for the first screen', async () => {
  const names = (await readdir(join(directory, 'assets'))).filter((name) => name.endsWith('.gz'))
  const sizes = new Map<string, number>()
  for (const name of names) sizes.set(name.slice(0, -3), (await stat(join(directory, 'assets', name))).size)
  const all = [...sizes.values()].reduce((sum, size) => sum + size, 0)
  // The page, and whatever it imports before it shows something.
  const first = new Set<string>()
  const add = async (name: string) => {
    if (first.has(name)) return
    first.add(name)
    const text = await readFile(join(directory, 'assets', name), 'utf8')
    for (const [, imported] of text.matchAll(/(?:from|import)"\.\/([\w-]+\.js)"/g)) await add(imported!)
  }
  const page = await readFile(join(directory, 'index.html'), 'utf8')
  for (const [, name] of page.matchAll(/\/assets\/([\w.-]+)"/g)) await add(name!)
  const shown = [...first].reduce((sum, name) => sum + sizes.get(name)!, 0)
  if (process.env.BERTH_SIZES) console.log(`whole console ${all} bytes gzip, first screen ${shown}`)
  expect(all).toBeLessThanOrEqual(80 * 1024)
  expect(shown).toBeLessThanOrEqual(40 * 1024)
  expect(first.size).toBeGreaterThan(3)
})

test('without built files / is what it was', async () => {
  const bare = await startApi({}, { consoleDirectory: join(directory, 'nowhere') })
  const { statusCode, body } = await bare.app.inject({ url: '/', headers: { accept: 'text/html' } })
  expect(statusCode).toBe(200)
  expect(body).toContain('The API is at')
  expect((await bare.app.inject({ url: '/sign-in', headers: { accept: 'text/html' } })).statusCode).toBe(404)
  await bare.stop()
})
