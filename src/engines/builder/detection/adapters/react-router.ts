// React Router as a framework, and its predecessor Remix: a server, or files.
import { type Adapter, configFiles, files, server } from '../../project/adapter.ts'
import { isSet } from '../../project/config-text.ts'
import { reasonOf } from '../../project/single-page.ts'

export const reactRouter: Adapter = {
  name: 'react-router',
  title: 'React Router',
  packages: ['@react-router/dev'],
  configs: configFiles('react-router.config'),
  build: 'npx --no-install react-router build',
  plan(facts, config) {
    if (isSet(config, 'ssr', false)) {
      const plan = files(['build/client'], 'The configuration of React Router has ssr: false.')
      return { ...plan, singlePage: reasonOf('React Router') }
    }
    const command = 'npx --no-install react-router-serve build/server/index.js'
    const start = facts.manifest.scripts.has('start') ? 'npm start' : command
    return server(
      start,
      'The configuration of React Router does not have ssr: false, so pages are rendered by a server.',
    )
  },
}

export const remix: Adapter = {
  name: 'remix',
  title: 'Remix',
  packages: ['@remix-run/dev', '@remix-run/serve'],
  configs: [...configFiles('vite.config'), ...configFiles('remix.config')],
  build: 'npx --no-install remix vite:build',
  plan(facts, config) {
    if (isSet(config, 'ssr', false)) {
      const plan = files(['build/client', 'public'], 'The configuration of Remix has ssr: false.')
      return { ...plan, singlePage: reasonOf('Remix') }
    }
    const command = 'npx --no-install remix-serve build/server/index.js'
    const start = facts.manifest.scripts.has('start') ? 'npm start' : command
    return server(start, 'Remix renders pages by a server.')
  },
}
