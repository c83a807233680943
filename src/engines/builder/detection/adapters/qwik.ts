// Qwik City: a folder per adapter shows what gets built. Without an adapter, the build writes no pages.
import { type Adapter, files, server } from '../../project/adapter.ts'

const servers = ['node-server', 'express', 'fastify']

export const qwik: Adapter = {
  name: 'qwik',
  title: 'Qwik',
  packages: ['@builder.io/qwik-city', '@qwik.dev/router'],
  build: 'npx --no-install qwik build',
  plan({ has }) {
    const uses = (name: string) => ['ts', 'mts', 'js'].some((ending) => has(`adapters/${name}/vite.config.${ending}`))
    const name = servers.find(uses)
    if (name !== undefined) return server(`node server/entry.${name}.js`, `It has the adapter ${name}.`)
    if (uses('static')) return files(['dist'], 'It has the adapter static.')
    const hint = 'Qwik builds pages only with an adapter: run npm run qwik add static, or node-server for a server.'
    return { ...files(['dist'], 'It has no supported adapter.'), hint }
  },
}
