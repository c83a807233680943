import { describe, expect, test } from 'vitest'
import { detect, findProjects, type Settings } from '../../../../src/engines/builder/detection/detect.ts'
import { treeOf } from './tree.ts'

const found = async (files: Record<string, string | object>, more: Partial<Settings> = {}, root = '') =>
  detect(treeOf(files), root, { framework: 'auto', buildCommand: null, outputDirectory: null, ...more })

const manifest = (dependencies: string[], scripts: object = { build: 'make' }, more: object = {}) => ({
  'package.json': { scripts, dependencies: Object.fromEntries(dependencies.map((name) => [name, '*'])), ...more },
})

describe('what is detected', () => {
  type Row = [
    what: string,
    files: Record<string, string | object>,
    kind: 'files' | 'server',
    framework: string,
    place: string,
  ]
  const next = manifest(['next', 'react'], { build: 'next build', start: 'next start' })
  const kit = manifest(['@sveltejs/kit', 'vite'])
  const angular = (options: object, builder = '@angular/build:application') => ({
    ...manifest(['@angular/core']),
    'angular.json': { projects: { shop: { projectType: 'application', architect: { build: { builder, options } } } } },
  })
  const rows: Row[] = [
    ['Next.js', next, 'server', 'next', 'npm start'],
    [
      'Next.js that exports',
      { ...next, 'next.config.mjs': "export default { output: 'export' }" },
      'files',
      'next',
      'out',
    ],
    [
      'Next.js with a choice',
      { ...next, 'next.config.ts': 'const c = { output: CI ? "export" : undefined }' },
      'files',
      'next',
      'out',
    ],
    [
      'Next.js whose export is commented out',
      { ...next, 'next.config.js': "// output: 'export'\nmodule.exports = {}" },
      'server',
      'next',
      'npm start',
    ],
    ['Next.js without a start script', manifest(['next'], {}), 'server', 'next', 'npx --no-install next start'],
    ['Nuxt', manifest(['nuxt'], { build: 'nuxt build' }), 'server', 'nuxt', 'node .output/server/index.mjs'],
    ['Nuxt that generates', manifest(['nuxt'], { build: 'nuxt generate' }), 'files', 'nuxt', '.output/public'],
    [
      'SvelteKit for Node.js',
      { ...kit, 'svelte.config.js': "import a from '@sveltejs/adapter-node'" },
      'server',
      'sveltekit',
      'node build/index.js',
    ],
    [
      'SvelteKit by itself',
      { ...kit, 'svelte.config.js': "import a from '@sveltejs/adapter-auto'" },
      'server',
      'sveltekit',
      'node build/index.js',
    ],
    [
      'SvelteKit that is static',
      { ...kit, 'svelte.config.js': "import a from '@sveltejs/adapter-static'" },
      'files',
      'sveltekit',
      'build',
    ],
    [
      'Astro',
      { ...manifest(['astro']), 'astro.config.mjs': 'export default defineConfig({})' },
      'files',
      'astro',
      'dist',
    ],
    [
      'Astro with a server',
      { ...manifest(['astro', '@astrojs/node']), 'astro.config.mjs': "import node from '@astrojs/node'" },
      'server',
      'astro',
      'node dist/server/entry.mjs',
    ],
    [
      'React Router',
      manifest(['@react-router/dev', 'vite'], { start: 'react-router-serve x' }),
      'server',
      'react-router',
      'npm start',
    ],
    [
      'React Router without a server',
      { ...manifest(['@react-router/dev']), 'react-router.config.ts': 'export default { ssr: false }' },
      'files',
      'react-router',
      'build/client',
    ],
    ['Remix', manifest(['@remix-run/dev', 'vite'], { start: 'remix-serve x' }), 'server', 'remix', 'npm start'],
    ['Gatsby', manifest(['gatsby', 'react']), 'files', 'gatsby', 'public'],
    [
      'Docusaurus',
      manifest(['@docusaurus/core', 'react'], { start: 'docusaurus start' }),
      'files',
      'docusaurus',
      'build',
    ],
    ['Eleventy', manifest(['@11ty/eleventy'], {}), 'files', 'eleventy', '_site'],
    [
      'Eleventy with a folder',
      { ...manifest([]), 'eleventy.config.js': 'return { dir: { output: "./www/" } }' },
      'files',
      'eleventy',
      'www',
    ],
    [
      'VitePress',
      manifest(['vitepress', 'vue'], { 'docs:build': 'vitepress build docs' }),
      'files',
      'vitepress',
      'docs/.vitepress/dist',
    ],
    ['Angular', angular({}), 'files', 'angular', 'dist/shop/browser'],
    [
      'Angular with a server',
      angular({ ssr: { entry: 'x' }, outputMode: 'server' }),
      'server',
      'angular',
      `NG_ALLOWED_HOSTS="\${NG_ALLOWED_HOSTS:-*}" node 'dist/shop/server/server.mjs'`,
    ],
    [
      'Angular before',
      angular({ outputPath: 'dist/old' }, '@angular-devkit/build-angular:browser'),
      'files',
      'angular',
      'dist/old',
    ],
    ['Vite', manifest(['vite', 'react']), 'files', 'vite', 'dist'],
    [
      'Vite with a folder',
      { ...manifest(['vite']), 'vite.config.ts': "export default { build: { outDir: 'www' } }" },
      'files',
      'vite',
      'www',
    ],
    [
      'Create React App',
      manifest(['react-scripts'], { start: 'react-scripts start', build: 'react-scripts build' }),
      'files',
      'react',
      'build',
    ],
    ['Parcel', manifest(['parcel']), 'files', 'parcel', 'dist'],
    ['Fastify', manifest(['fastify'], { start: 'node server.js' }), 'server', 'node', 'npm start'],
    [
      'Express by main',
      { ...manifest(['express'], {}, { main: './app.js' }), 'app.js': '' },
      'server',
      'node',
      "node 'app.js'",
    ],
    [
      'Hono',
      manifest(['hono', '@hono/node-server'], { build: 'tsc', start: 'node dist/index.js' }),
      'server',
      'node',
      'npm start',
    ],
    [
      'NestJS',
      manifest(['@nestjs/core'], { start: 'nest start', 'start:prod': 'node dist/main' }),
      'server',
      'node',
      'npm run start:prod',
    ],
    [
      'Express with Vite',
      manifest(['express', 'vite'], { build: 'vite build', start: 'node server' }),
      'server',
      'node',
      'npm start',
    ],
    ['Vite with Express for tests', manifest(['vite', 'express'], { start: 'vite' }), 'files', 'vite', 'dist'],
    ['a bare server', { ...manifest([], { start: 'node .' }), 'index.js': '' }, 'server', 'node', 'npm start'],
    [
      'Express in TypeScript, by what the build makes of main',
      manifest(['express'], { build: 'tsc' }, { main: 'dist/index.js' }),
      'server',
      'node',
      "node 'dist/index.js'",
    ],
    [
      'Express whose start script runs another',
      manifest(['express'], { start: 'npm run serve', serve: 'node .' }),
      'server',
      'node',
      'npm start',
    ],
    [
      'a main file that listens',
      { ...manifest([], {}, { main: 'web.js' }), 'web.js': 'http.createServer(f).listen(80)' },
      'server',
      'node',
      "node 'web.js'",
    ],
    ['a file that listens, and nothing else', { 'index.js': 'app.listen (80)' }, 'server', 'node', "node 'index.js'"],
    [
      'a file that would listen',
      { 'index.js': '// app.listen(80)', 'public/index.html': '' },
      'files',
      'static',
      'public',
    ],
    ['nothing but a start script', manifest([], { start: 'serve -l $PORT' }), 'server', 'node', 'npm start'],
    [
      'a start script beside a page',
      { ...manifest([], { start: 'live-server' }), 'index.html': '' },
      'files',
      'static',
      '.',
    ],
    [
      'SolidStart',
      manifest(['@solidjs/start', 'vinxi'], { build: 'vinxi build', start: 'vinxi start' }),
      'server',
      'solidstart',
      'node .output/server/index.mjs',
    ],
    [
      'TanStack Start with Nitro',
      { ...manifest(['@tanstack/react-start', 'vite']), 'vite.config.ts': 'export default { plugins: [nitro()] }' },
      'server',
      'tanstack-start',
      'node .output/server/index.mjs',
    ],
    [
      'TanStack Start by itself',
      { ...manifest(['@tanstack/react-start', 'vite']), 'vite.config.ts': 'plugins: [tanstackStart()]' },
      'server',
      'tanstack-start',
      'npx --no-install srvx --prod -s ../client dist/server/server.js',
    ],
    [
      'Qwik for Express',
      { ...manifest(['@builder.io/qwik-city', 'express'], {}), 'adapters/express/vite.config.ts': '' },
      'server',
      'qwik',
      'node server/entry.express.js',
    ],
    [
      'Qwik that is static',
      { ...manifest(['@builder.io/qwik-city']), 'adapters/static/vite.config.ts': '' },
      'files',
      'qwik',
      'dist',
    ],
    ['Nitro', manifest(['nitro', 'h3'], { build: 'nitro build' }), 'server', 'nitro', 'node .output/server/index.mjs'],
    [
      'Nitro with a static preset',
      { ...manifest(['nitropack']), 'nitro.config.ts': "export default { preset: 'static' }" },
      'files',
      'nitro',
      '.output/public',
    ],
    ['Hugo', { 'hugo.toml': '', 'content/a.md': '' }, 'files', 'hugo', 'public'],
    ['Jekyll', { '_config.yml': '', '_posts/a.md': '' }, 'files', 'jekyll', '_site'],
    ['plain files', { 'index.html': '' }, 'files', 'static', '.'],
    ['plain files in a folder', { 'public/index.html': '', 'README.md': '' }, 'files', 'static', 'public'],
    ['a build of its own', manifest([], { build: 'make' }), 'files', 'other', 'dist'],
    ['nothing', {}, 'files', 'static', '.'],
  ]
  test.each(rows)('%s', async (_what, files, kind, framework, place) => {
    const { detected } = await found(files)
    expect(detected).toMatchObject({ kind, framework })
    expect(kind === 'server' ? detected.startCommand : detected.output).toBe(place)
    expect(kind === 'server' || detected.startCommand === null).toBe(true)
  })

  test('a build command of the framework where package.json has none', async () => {
    const commandOf = async (name: string) => (await found(manifest([name], {}))).detected.buildCommand
    expect(await commandOf('vite')).toBe('npx --no-install vite build')
    expect(await commandOf('gatsby')).toBe('npx --no-install gatsby build')
    expect((await found(manifest(['vite']))).detected.buildCommand).toBe('npm run build')
    expect((await found(manifest(['vitepress'], { 'docs:build': 'vitepress build docs' }))).detected.buildCommand).toBe(
      'npm run docs:build',
    )
  })

  test('the adapter for Node.js is installed for SvelteKit where it is missing', async () => {
    const kit = (...more: string[]) => ({
      ...manifest(['@sveltejs/kit', ...more]),
      'svelte.config.js': "import a from '@sveltejs/adapter-auto'",
    })
    expect((await found(kit())).detected.buildCommand).toMatch(
      /^npm install --no-save @sveltejs\/adapter-node\S* && .*npm run build$/,
    )
    expect((await found(kit('@sveltejs/adapter-node'))).detected.buildCommand).not.toContain('install')
  })

  test('srvx is installed for TanStack Start where it is missing', async () => {
    const start = (...more: string[]) => found(manifest(['@tanstack/react-start', ...more]))
    expect((await start()).detected.buildCommand).toMatch(/^npm install --no-save srvx\S* && npm run build$/)
    expect((await start('srvx')).detected.buildCommand).toBe('npm run build')
  })

  test('what Nitro makes has its own modules, unless it is told not to', async () => {
    expect((await found(manifest(['nuxt']))).selfContained).toBe(true)
    expect((await found(manifest(['express'], { start: 'node .' }))).selfContained).toBe(false)
    const apart = { ...manifest(['nuxt']), 'nuxt.config.ts': 'nitro: { externals: { trace: false } }' }
    expect((await found(apart)).selfContained).toBe(false)
  })

  test('Qwik without an adapter needs a page, and says what makes one', async () => {
    const { outputs, hint } = await found(manifest(['@builder.io/qwik-city', 'vite']))
    expect(outputs).toEqual([{ path: 'dist', needsIndex: true }])
    expect(hint).toContain('qwik add')
  })

  test('folders that look like projects, without examples and libraries', async () => {
    const web = manifest(['next'])['package.json']
    const files = {
      'package.json': { workspaces: ['*/*'], scripts: { build: 'turbo run build' } },
      'apps/web/package.json': web,
      'apps/api/package.json': manifest(['fastify'], { start: 'node .' })['package.json'],
      'packages/ui/package.json': { name: 'ui', scripts: { build: 'tsc' } },
      'examples/one/package.json': web,
      'node_modules/x/package.json': web,
    }
    expect(await findProjects(treeOf(files), '')).toEqual(['apps/web (Next.js)', 'apps/api (Node.js server)'])
    expect(await findProjects(treeOf(files), 'apps/')).toEqual(['web (Next.js)', 'api (Node.js server)'])
  })

  test('why, in sentences', async () => {
    const { detected } = await found({ ...manifest(['next']), 'pnpm-lock.yaml': '', '.nvmrc': 'v22.1\n' })
    expect(detected.because).toEqual([
      'package.json depends on next.',
      expect.stringContaining('rendered by a server'),
      'pnpm-lock.yaml is a lockfile of pnpm.',
      '.nvmrc asks for Node.js v22.1.',
    ])
    expect(detected.node).toBe('22')
  })

  test('in the root directory alone', async () => {
    const files = { 'web/package.json': manifest(['vite'])['package.json'], 'index.html': '' }
    expect((await found(files, {}, 'web/')).detected.framework).toBe('vite')
    expect((await found(files)).detected.framework).toBe('static')
  })
})

describe('what the owner has set', () => {
  const next = manifest(['next'])
  test('goes before what is detected', async () => {
    const { detected, outputs } = await found(next, { buildCommand: 'make site', outputDirectory: 'web' })
    expect(detected).toMatchObject({ framework: 'next', kind: 'files', buildCommand: 'make site', output: 'web' })
    expect(outputs).toEqual([{ path: 'web', needsIndex: false }])
    expect((await found(next, { buildCommand: 'nuxt generate' })).detected.kind).toBe('server')
    expect((await found(manifest(['nuxt']), { buildCommand: 'nuxt generate' })).detected.kind).toBe('files')
  })

  test.each(['static', 'other'] as const)('%s is never a server', async (framework) => {
    const { detected } = await found(manifest(['express'], { build: 'x', start: 'node .' }), { framework })
    expect(detected).toMatchObject({ framework, kind: 'files', buildCommand: 'npm run build' })
  })

  test('node always is one', async () => {
    expect((await found({}, { framework: 'node' })).detected).toMatchObject({
      kind: 'server',
      startCommand: 'npm start',
    })
    const both = { framework: 'node', outputDirectory: 'public' } as const
    expect((await found(manifest(['vite']), both)).detected).toMatchObject({ kind: 'server', framework: 'node' })
  })

  test.each([
    ['vite', 'dist'],
    ['next', 'out'],
    ['nuxt', '.output/public'],
    ['sveltekit', 'build'],
    ['remix', 'build/client'],
    ['hugo', 'public'],
  ] as const)('%s without its package publishes %s, as the build script made it', async (framework, output) => {
    const { detected } = await found(manifest([]), { framework })
    expect(detected).toMatchObject({ framework, output, kind: 'files', buildCommand: 'npm run build' })
  })

  test('a framework whose package is there is served as it is built', async () => {
    expect((await found(next, { framework: 'next' })).detected.kind).toBe('server')
    expect((await found(manifest(['react-scripts']), { framework: 'react' })).detected.output).toBe('build')
    expect((await found(manifest(['vite']), { framework: 'svelte' })).outputs[0]).toEqual({
      path: 'dist',
      needsIndex: false,
    })
  })

  test('a tool is needed only by the command that runs it', async () => {
    expect((await found({ 'hugo.toml': '' })).tool).toBe('hugo')
    expect((await found({}, { framework: 'hugo' })).tool).toBe('hugo')
    expect((await found({ 'hugo.toml': '' }, { buildCommand: 'npx hugo-bin' })).tool).toBeNull()
  })
})
