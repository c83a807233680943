// Frameworks based on Nitro, whose .output folder contains a complete server.

import { type Adapter, configFiles, type Facts, files, type Plan, server } from '../../project/adapter.ts'
import { isSet, mayBe } from '../../project/config-text.ts'
import { scriptCommandOf } from '../../project/toolchain.ts'

const folder = '.output'
const isStatic = (config: string) => mayBe(config, 'preset', '(?:static|vercel-static|github-pages)')

/** `name` is the framework's name. */
export function planOfNitro(config: string, name: string): Plan {
  if (isStatic(config)) return files([`${folder}/public`], `The configuration of ${name} has a static preset.`)
  const plan = server(`node ${folder}/server/index.mjs`, `The build of ${name} makes a server in ${folder}.`)
  return isSet(config, 'trace', false) ? plan : { ...plan, selfContained: true }
}

export const solidStart: Adapter = {
  name: 'solidstart',
  title: 'SolidStart',
  packages: ['@solidjs/start'],
  configs: [...configFiles('app.config'), ...configFiles('vite.config')],
  build: 'npx --no-install vinxi build',
  plan: (_facts, config) => planOfNitro(config, 'SolidStart'),
}

export const nitro: Adapter = {
  name: 'nitro',
  title: 'Nitro',
  packages: ['nitro', 'nitropack', 'vinxi'],
  configs: [...configFiles('nitro.config'), ...configFiles('vite.config'), ...configFiles('app.config')],
  build: 'npx --no-install nitro build',
  plan: (_facts, config) => planOfNitro(config, 'Nitro'),
}

// Turns the handler that TanStack Start builds into a server, following its documentation.
const srvx = 'npx --no-install srvx --prod -s ../client dist/server/server.js'

export const tanstackStart: Adapter = {
  name: 'tanstack-start',
  title: 'TanStack Start',
  packages: ['@tanstack/react-start', '@tanstack/solid-start'],
  configs: configFiles('vite.config'),
  build: 'npx --no-install vite build',
  plan(facts, config) {
    const { manifest, manager } = facts
    if (usesNitro(facts, config)) return planOfNitro(config, 'TanStack Start')
    const start = manifest.scripts.get('start')
    if (start !== undefined && /\b(node|srvx|bun|tsx)\b/.test(start))
      return server('npm start', 'package.json has a start script.')
    const because = 'The build of TanStack Start makes a handler, which srvx serves.'
    if (manifest.dependencies.has('srvx')) return server(srvx, because)
    const script = manifest.scripts.has('build') ? scriptCommandOf(manager, 'build') : this.build
    const add = { npm: 'npm install --no-save', pnpm: 'pnpm add -D', yarn: 'yarn add -D', bun: 'bun add -d' }
    return { ...server(srvx, because), build: `${add[manager?.name ?? 'npm']} srvx@0 && ${script}` }
  },
}

const usesNitro = ({ manifest }: Facts, config: string) =>
  /\bnitro(V2Plugin)?\(/.test(config) || (config === '' && manifest.dependencies.has('nitro'))
