// Sites of very many files: making one ready leaves the visitors of others their turn.
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createSites } from '../../../src/engines/edge/sites.ts'
import type { Artifacts, Manifest } from '../../../src/platform/artifacts.ts'

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
