// SvelteKit: files or a Node.js server, depending on its adapter.

import { type Adapter, configFiles, files, server } from '../../project/adapter.ts'
import { folderOf, mayBe } from '../../project/config-text.ts'
import { scriptCommandOf } from '../../project/toolchain.ts'

const start = 'node build/index.js'

export const sveltekit: Adapter = {
  name: 'sveltekit',
  title: 'SvelteKit',
  packages: ['@sveltejs/kit'],
  configs: [...configFiles('svelte.config'), ...configFiles('vite.config')],
  build: 'npx --no-install vite build',
  plan({ manifest, manager }, config) {
    const uses = (name: string) =>
      config.includes(`@sveltejs/adapter-${name}`) ||
      (config === '' && manifest.dependencies.has(`@sveltejs/adapter-${name}`))
    if (uses('static')) {
      const plan = files([folderOf(config, 'pages') ?? 'build'], 'It uses @sveltejs/adapter-static.')
      const page = ['200.html', 'index.html'].find((name) => mayBe(config, 'fallback', name.replace('.', '\\.')))
      return page ? { ...plan, singlePage: `Its fallback is ${page}, which unknown paths get.` } : plan
    }
    if (uses('node')) return server(start, 'It uses @sveltejs/adapter-node.')
    if (!uses('auto')) return files(['build'], 'It uses an adapter that is neither static nor for Node.js.')
    // adapter-auto picks the adapter for Node.js if this variable is set.
    const script = manifest.scripts.has('build') ? scriptCommandOf(manager, 'build') : this.build
    const add = { npm: 'npm install --no-save', pnpm: 'pnpm add -D', yarn: 'yarn add -D', bun: 'bun add -d' }
    const install = `${add[manager?.name ?? 'npm']} @sveltejs/adapter-node@5`
    const build = `${manifest.dependencies.has('@sveltejs/adapter-node') ? '' : `${install} && `}GCP_BUILDPACKS=1 ${script}`
    return { ...server(start, 'It uses @sveltejs/adapter-auto, which gets the adapter for Node.js here.'), build }
  },
}
