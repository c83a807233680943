// Bundlers and the tools based on them.
import { type Adapter, configFiles, files } from '../../project/adapter.ts'
import { folderOf, plainFolder } from '../../project/config-text.ts'
import { reasonOf, singlePageOf } from '../../project/single-page.ts'

const flavours = [
  ['react', 'React'],
  ['vue', 'Vue'],
  ['svelte', 'Svelte'],
  ['solid-js', 'Solid'],
  ['preact', 'Preact'],
  ['lit', 'Lit'],
] as const

export const vite: Adapter = {
  name: 'vite',
  title: 'Vite',
  packages: ['vite', 'rolldown-vite'],
  files: configFiles('vite.config'),
  configs: configFiles('vite.config'),
  build: 'npx --no-install vite build',
  plan({ manifest, buildText }, config) {
    const argument = /--outDir[= ]([^\s&|;]{1,200})/.exec(buildText)?.[1]
    const folder = (argument === undefined ? folderOf(config, 'outDir') : plainFolder(argument)) ?? 'dist'
    const flavour = flavours.find(([name]) => manifest.dependencies.has(name))
    const plan = files([folder], `Vite${flavour ? ` with ${flavour[1]}` : ''} writes to ${folder}.`)
    return { ...plan, singlePage: singlePageOf(manifest, { config }) }
  },
}

export const createReactApp: Adapter = {
  name: 'react',
  title: 'Create React App',
  packages: ['react-scripts'],
  build: 'npx --no-install react-scripts build',
  plan: () => ({ ...files(['build'], 'react-scripts writes to build.'), singlePage: reasonOf('react') }),
}

export const vueCli: Adapter = {
  name: 'vue',
  title: 'Vue CLI',
  packages: ['@vue/cli-service'],
  configs: configFiles('vue.config'),
  build: 'npx --no-install vue-cli-service build',
  plan({ manifest }, config) {
    const plan = files([folderOf(config, 'outputDir') ?? 'dist'], 'vue-cli-service writes to dist.')
    return { ...plan, singlePage: singlePageOf(manifest, { config }) }
  },
}

export const parcel: Adapter = {
  name: 'parcel',
  title: 'Parcel',
  packages: ['parcel', 'parcel-bundler'],
  build: 'npx --no-install parcel build index.html',
  plan({ manifest, buildText }) {
    const argument = /--dist-dir[= ]([^\s&|;]{1,200})/.exec(buildText)?.[1]
    const folder = (argument === undefined ? null : plainFolder(argument)) ?? 'dist'
    return { ...files([folder], `Parcel writes to ${folder}.`), singlePage: singlePageOf(manifest) }
  },
}
