// Next.js: exported to files, or rendered by `next start`.
import { type Adapter, configFiles, files, server, startOf } from '../../project/adapter.ts'
import { folderOf, mayBe } from '../../project/config-text.ts'

export const next: Adapter = {
  name: 'next',
  title: 'Next.js',
  packages: ['next'],
  configs: configFiles('next.config'),
  build: 'npx --no-install next build',
  plan(facts, config) {
    const folder = folderOf(config, 'distDir')
    if (mayBe(config, 'output', 'export')) {
      return files([folder ?? 'out', 'out'], "The configuration of Next.js has output: 'export'.")
    }
    if (facts.buildText.includes('next export')) return files(['out'], 'The build runs next export.')
    const start = startOf(facts, 'next start', 'npx --no-install next start')
    return server(
      start,
      "The configuration of Next.js does not have output: 'export', so pages are rendered by a server.",
    )
  },
}
