// Sites of very many files: making one ready leaves the visitors of others their turn.
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import type { FileRoute } from '../../../src/engines/edge/answer/routes.ts'
import { createSites } from '../../../src/engines/edge/hosts/sites.ts'
import type { Artifacts, Manifest } from '../../../src/platform/artifacts/artifacts.ts'

const file = { hash: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', size: 0 }
const paths = Array.from({ length: 20_000 }, (_, n) => `folder/page-${n}.html`)
const manifest = { kind: 'static', files: Object.fromEntries(paths.map((path) => [path, file])), cleanUrls: true }
const artifacts = { read: async () => structuredClone(manifest) as unknown as Manifest } as unknown as Artifacts

test('a site of twenty thousand pages is made ready between other work, at the first visit and at later ones', async () => {
  const sites = createSites(artifacts, pino({ level: 'silent' }))
  for (const id of ['dpl_1', 'dpl_1']) {
    let turns = 0
    let done = false
    const other = () => {
      turns++
      if (!done) setImmediate(other)
    }
    setImmediate(other)
    const site = await sites.load(id)
    done = true
    expect(turns).toBeGreaterThan(5)
    expect(site?.routes.get('/folder/page-7')).toMatchObject({ path: 'folder/page-7.html' })
  }
})

describe('what the rules of a site make of memory counts for its place in the cache:', () => {
  const sitesWith = (headers: string, count = 1) => {
    const files = Object.fromEntries(Array.from({ length: count }, (_, n) => [`${n}.txt`, file]))
    const rules = { hash: 'rules', size: headers.length }
    const manifest = { kind: 'static', files: { ...files, _headers: rules }, cleanUrls: true }
    const artifacts = { read: async () => manifest, load: async () => Buffer.from(headers) } as unknown as Artifacts
    return createSites(artifacts, pino({ level: 'silent' }))
  }

  test('headers that are long at many paths', async () => {
    const sites = sitesWith(`/*\n${`  x: ${'v'.repeat(4_000)}\n`.repeat(60)}`, 500)
    const site = (await sites.load('dpl_1'))!
    let visited = 0
    for (; sites.get('dpl_1') && visited < 500; visited++) {
      const path = `/${visited}.txt`
      site.variantsOf(site.routes.get(path) as FileRoute, path)
    }
    expect(visited).toBeLessThan(200)
  })

  test.each([
    ['many passwords', `/\n  Basic-Auth: ${'a:b '.repeat(1_000)}`, 200],
    ['much text', `/\n  x: ${'v'.repeat(4_000)}\n# ${'-'.repeat(250_000)}`, 200],
  ])('%s', async (_what, headers, count) => {
    const sites = sitesWith(headers)
    const ids = Array.from({ length: count }, (_, n) => `dpl_${n}`)
    for (const id of ids) await sites.load(id)
    expect(ids.filter((id) => sites.get(id)).length).toBeLessThan(count)
  })
})
