// Detects single-page apps, whose index page is served for every unknown path.
import { mayBe } from './config-text.ts'
import type { PackageManifest } from './manifest.ts'

const routers = [
  'vue-router',
  'react-router-dom',
  'react-router',
  '@tanstack/react-router',
  '@tanstack/solid-router',
  '@solidjs/router',
  'wouter',
  'wouter-preact',
  'preact-router',
  'preact-iso',
  'svelte-routing',
  'svelte-spa-router',
  'sv-router',
  '@roxi/routify',
  '@lit-labs/router',
  '@vaadin/router',
  '@reach/router',
  'navigo',
  'universal-router',
]
const frameworks = ['react', 'preact', 'vue', 'svelte', 'solid-js', 'lit', 'inferno', 'mithril', 'ember-source']
// These use the same packages, but write a page for each route.
const generators = [
  'vite-ssg',
  'vite-react-ssg',
  'vike',
  'vite-plugin-ssr',
  'vuepress',
  'iles',
  'gridsome',
  'react-static',
]

/** The reason to treat a site as a single-page app, else undefined. */
export function singlePageOf(
  { dependencies }: PackageManifest,
  { config = '', byRouter = false }: { config?: string; byRouter?: boolean } = {},
): string | undefined {
  if (generators.some((name) => dependencies.has(name)) || hasSeveralPages(config)) return undefined
  const name = [...routers, ...(byRouter ? [] : frameworks)].find((name) => dependencies.has(name))
  return name && reasonOf(name)
}

export const reasonOf = (name: string): string => `${name} shows pages in the browser, so unknown paths get index.html.`

/** Reads Vite's configuration. */
const hasSeveralPages = (config: string): boolean =>
  mayBe(config, 'appType', 'mpa') || new Set(config.match(/[\w./-]{1,200}\.html(?=["'`])/g)).size > 1
