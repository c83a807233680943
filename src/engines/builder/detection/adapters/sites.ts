// Static site generators.

import { type Adapter, configFiles, files } from '../../project/adapter.ts'
import { folderOf, plainFolder } from '../../project/config-text.ts'
import { scriptCommandOf } from '../../project/toolchain.ts'

export const gatsby: Adapter = {
  name: 'gatsby',
  title: 'Gatsby',
  packages: ['gatsby'],
  build: 'npx --no-install gatsby build',
  plan: () => files(['public'], 'Gatsby writes to public.'),
}

export const docusaurus: Adapter = {
  name: 'docusaurus',
  title: 'Docusaurus',
  packages: ['@docusaurus/core'],
  build: 'npx --no-install docusaurus build',
  plan: () => files(['build'], 'Docusaurus writes to build.'),
}

const eleventyConfigs = ['.eleventy.js', ...configFiles('eleventy.config')]

export const eleventy: Adapter = {
  name: 'eleventy',
  title: 'Eleventy',
  packages: ['@11ty/eleventy'],
  files: eleventyConfigs,
  configs: eleventyConfigs,
  build: 'npx --no-install @11ty/eleventy',
  plan({ buildText }, config) {
    const argument = /--output[= ]([^\s&|;]{1,200})/.exec(buildText)?.[1]
    const setter = /setOutputDirectory\(\s{0,20}["'`]([^"'`\n]{1,200})["'`]/.exec(config)?.[1]
    const named = argument ?? setter
    const folder = (named === undefined ? null : plainFolder(named)) ?? folderOf(config, 'output')
    return files([folder ?? '_site', '_site'], `Eleventy writes to ${folder ?? '_site'}.`)
  },
}

export const vitepress: Adapter = {
  name: 'vitepress',
  title: 'VitePress',
  packages: ['vitepress'],
  build: 'npx --no-install vitepress build',
  plan({ manifest, manager, hasFolder }) {
    const scripts = [...manifest.scripts].filter(([, text]) => /\bvitepress build\b/.test(text))
    const [name, text] = scripts.find(([name]) => name === 'build') ?? scripts[0] ?? []
    const argument = text && /\bvitepress build\s+([^\s&|;-][^\s&|;]{0,200})/.exec(text)?.[1]
    const folder = (argument && plainFolder(argument)) || (text === undefined && hasFolder('docs') ? 'docs' : '')
    const output = folder === '' ? '.vitepress/dist' : `${folder}/.vitepress/dist`
    const build =
      name !== undefined
        ? scriptCommandOf(manager, /^[\w:.-]+$/.test(name) ? name : 'build')
        : `${this.build} ${folder}`.trim()
    return { ...files([output], `VitePress writes to ${output}.`), build }
  },
}
