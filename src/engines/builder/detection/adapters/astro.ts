// Astro: files, or a server with the adapter for Node.js.
import { type Adapter, configFiles, files, server, startOf } from '../../project/adapter.ts'
import { folderOf, mayBe } from '../../project/config-text.ts'

export const astro: Adapter = {
  name: 'astro',
  title: 'Astro',
  packages: ['astro'],
  configs: configFiles('astro.config'),
  build: 'npx --no-install astro build',
  plan(facts, config) {
    const folder = folderOf(config, 'outDir') ?? 'dist'
    if (config.includes('@astrojs/node')) {
      const command = `node ${folder}/server/entry.mjs`
      if (!mayBe(config, 'mode', 'middleware')) return server(command, 'It uses the adapter @astrojs/node.')
      return server(startOf(facts, 'node', command), '@astrojs/node is middleware of its own server.')
    }
    return files([folder], 'It has no adapter for a server, so all pages are files.')
  },
}
