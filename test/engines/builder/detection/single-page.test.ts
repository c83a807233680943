// Starters with and without a router: which of them get their page for unknown paths, by package.json and what they write.
import { describe, expect, test } from 'vitest'
import { detect, type Settings } from '../../../../src/engines/builder/detection/detect.ts'
import { isSinglePage } from '../../../../src/engines/builder/output/publish.ts'
import { treeOf } from './tree.ts'

type Files = Record<string, string | object>
type Starter = { dependencies: string[]; files?: Files; build?: string | null; settings?: Partial<Settings> }

async function isApp({ dependencies, files = {}, build = 'build it', settings = {} }: Starter, output: string[]) {
  const manifest = { scripts: build === null ? {} : { build }, dependencies: versionsOf(dependencies) }
  const given = { framework: 'auto', buildCommand: null, outputDirectory: null, ...settings } as const
  const { detected } = await detect(treeOf({ 'package.json': manifest, ...files }), '', given)
  return { detected, isApp: isSinglePage(detected, Object.fromEntries(output.map((path) => [path, {}]))) }
}

const versionsOf = (names: string[]) => Object.fromEntries(names.map((name) => [name, '*']))
const one = ['index.html', 'assets/index-B3kfa91x.js']
const pages = ['index.html', 'about/index.html']
const angular = (options: object, builder = '@angular/build:application') => ({
  'angular.json': { projects: { shop: { projectType: 'application', architect: { build: { builder, options } } } } },
})
const kit = (adapter: string) => ({
  'svelte.config.js': `import a from '@sveltejs/adapter-static'\nexport default { kit: { adapter: a(${adapter}) } }`,
})

describe('get their page for unknown paths', () => {
  const rows: [what: string, starter: Starter, output: string[], reason: string][] = [
    ['create-vue with a router', { dependencies: ['vue', 'vue-router', 'vite'] }, one, 'vue-router'],
    ['create-vue without', { dependencies: ['vue', 'vite'] }, one, 'vue'],
    ['create-vite react', { dependencies: ['react', 'react-dom', 'vite'] }, one, 'react'],
    [
      'create-vite react with a router',
      { dependencies: ['react', 'react-router-dom', 'vite'] },
      one,
      'react-router-dom',
    ],
    [
      'create-vite react with TanStack',
      { dependencies: ['react', '@tanstack/react-router', 'vite'] },
      one,
      '@tanstack',
    ],
    ['create-vite svelte', { dependencies: ['svelte', 'vite'] }, one, 'svelte'],
    ['create-vite solid', { dependencies: ['solid-js', 'vite'] }, one, 'solid-js'],
    [
      'create-vite solid with a router',
      { dependencies: ['solid-js', '@solidjs/router', 'vite'] },
      one,
      '@solidjs/router',
    ],
    ['create-vite preact', { dependencies: ['preact', 'vite'] }, one, 'preact'],
    ['create-preact', { dependencies: ['preact', 'preact-iso', 'vite'] }, one, 'preact-iso'],
    ['create-vite lit', { dependencies: ['lit', 'vite'] }, one, 'lit'],
    ['create-vite vanilla with a router', { dependencies: ['navigo', 'vite'] }, one, 'navigo'],
    ['an app with a page beside it', { dependencies: ['vue', 'vite'] }, [...one, 'silent-renew.html'], 'vue'],
    ['create-react-app', { dependencies: ['react', 'react-scripts'] }, one, 'react'],
    ['Vue CLI', { dependencies: ['vue', '@vue/cli-service'] }, one, 'vue'],
    ['Parcel with React', { dependencies: ['react', 'parcel'] }, one, 'react'],
    ['Angular', { dependencies: ['@angular/core'], files: angular({}) }, one, 'Angular'],
    ['Angular, older', { dependencies: ['@angular/core'], files: angular({}, 'x:browser') }, one, 'Angular'],
    [
      'SvelteKit with a fallback',
      { dependencies: ['@sveltejs/kit'], files: kit("{ fallback: '200.html' }") },
      ['200.html', ...pages],
      '200.html',
    ],
    [
      'SvelteKit with index.html',
      { dependencies: ['@sveltejs/kit'], files: kit("{ fallback: 'index.html' }") },
      one,
      'index.html',
    ],
    [
      'React Router without a server',
      { dependencies: ['@react-router/dev'], files: { 'react-router.config.ts': 'export default { ssr: false }' } },
      one,
      'React Router',
    ],
    ['webpack with a router', { dependencies: ['react', 'react-router-dom', 'webpack'] }, one, 'react-router-dom'],
    ['what its owner calls React', { dependencies: ['webpack'], settings: { framework: 'react' } }, one, 'react'],
  ]
  test.each(rows)('%s', async (_what, starter, output, reason) => {
    const found = await isApp(starter, output)
    expect(found).toMatchObject({ isApp: true, detected: { spaFallback: true, kind: 'files' } })
    expect(found.detected.because.at(-1)).toContain(reason)
    // A page of its own for what is not there goes before it.
    expect((await isApp(starter, [...output, '404.html'])).isApp).toBe(false)
    expect((await isApp(starter, ['main.js'])).isApp).toBe(false)
  })
})

describe('are served as they are', () => {
  const rows: [what: string, starter: Starter, output: string[]][] = [
    ['create-vite vanilla', { dependencies: ['vite'] }, one],
    [
      'Vite with several pages',
      { dependencies: ['vue', 'vite'], files: { 'vite.config.ts': "input: { a: 'index.html', b: 'admin.html' }" } },
      one,
    ],
    ['Vite that says so', { dependencies: ['vue', 'vite'], files: { 'vite.config.ts': "appType: 'mpa'" } }, one],
    ['vite-ssg', { dependencies: ['vue', 'vue-router', 'vite-ssg', 'vite'] }, pages],
    ['Astro with React', { dependencies: ['astro', 'react'] }, pages],
    ['Gatsby', { dependencies: ['gatsby', 'react'] }, [...pages, '404.html']],
    ['Docusaurus', { dependencies: ['@docusaurus/core', 'react'] }, [...pages, '404.html']],
    ['VitePress', { dependencies: ['vitepress', 'vue'] }, pages],
    ['Eleventy', { dependencies: ['@11ty/eleventy'] }, pages],
    [
      'Next.js that exports',
      { dependencies: ['next', 'react'], files: { 'next.config.mjs': "output: 'export'" } },
      pages,
    ],
    ['Nuxt that generates', { dependencies: ['nuxt', 'vue'], build: 'nuxt generate' }, pages],
    ['SvelteKit with a page for each route', { dependencies: ['@sveltejs/kit', 'svelte'], files: kit('') }, pages],
    [
      'SvelteKit with a 404.html',
      { dependencies: ['@sveltejs/kit'], files: kit("{ fallback: '404.html' }") },
      ['404.html', ...pages],
    ],
    [
      'Angular with a page for each route',
      { dependencies: ['@angular/core'], files: angular({ ssr: {}, outputMode: 'static' }) },
      pages,
    ],
    ['files without a build', { dependencies: ['react'], build: null }, one],
    ['what its owner calls static', { dependencies: ['vue-router'], settings: { framework: 'static' } }, one],
    ['webpack without a router', { dependencies: ['react', 'webpack'] }, one],
  ]
  test.each(rows)('%s', async (_what, starter, output) => {
    expect(await isApp(starter, output)).toMatchObject({ isApp: false, detected: { spaFallback: false } })
  })

  test('a server', async () => {
    const { detected } = await isApp({ dependencies: ['next', 'react'] }, [])
    expect(detected).toMatchObject({ kind: 'server', spaFallback: false })
  })
})
