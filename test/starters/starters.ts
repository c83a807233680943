// The starters: each is made by its own generator from the package registry. Where that asks another host for its template,
// or there is none, it is a few files.

export type Starter = {
  name: string
  /** Run in an empty directory; makes the folder `app`. */
  make?: string
  /** Written into `app`. */
  files?: Record<string, string>
  /** Run in `app` afterwards, for example to write a lockfile. */
  after?: string
  rootDirectory?: string
}

const json = (value: object) => JSON.stringify(value, null, 2)
const listen = 'process.env.PORT ?? 3000'

const nextApp =
  'npx --yes create-next-app@latest app --yes --ts --app --no-eslint --no-tailwind --no-src-dir --use-npm --disable-git'

// That of the generator fetches fonts from another host.
const nextLayout = {
  'app/layout.tsx':
    "import type { ReactNode } from 'react'\n" +
    'export default ({ children }: { children: ReactNode }) => (\n' +
    '  <html lang="en">\n    <body>{children}</body>\n  </html>\n)\n',
}

const express = {
  'package.json': json({
    name: 'app',
    private: true,
    scripts: { start: 'node app.js' },
    dependencies: { express: '^5' },
  }),
  'app.js': `require('express')().get('/', (_, answer) => answer.send('express')).listen(${listen})\n`,
}

const managed = (manager: string, lock: string): Starter => ({
  name: manager.replace('@', '-'),
  files: { ...express, '.gitignore': 'node_modules\n' },
  after: `npx --yes ${lock}`,
})

export const starters: Starter[] = [
  { name: 'vite-react', make: 'npm create --yes vite@latest app -- --template react --no-interactive' },
  { name: 'vite-vue', make: 'npm create --yes vite@latest app -- --template vue --no-interactive' },
  { name: 'vite-svelte', make: 'npm create --yes vite@latest app -- --template svelte --no-interactive' },
  {
    name: 'astro',
    files: {
      'package.json': json({
        name: 'app',
        type: 'module',
        scripts: { build: 'astro build' },
        dependencies: { astro: 'latest' },
      }),
      'astro.config.mjs': "import { defineConfig } from 'astro/config'\nexport default defineConfig({})\n",
      'src/pages/index.astro': '<html lang="en"><head><title>astro</title></head><body><h1>astro</h1></body></html>\n',
    },
  },
  { name: 'sveltekit', make: 'npx --yes sv create app --template minimal --types ts --no-add-ons --no-install' },
  { name: 'next-server', make: nextApp, files: nextLayout },
  {
    name: 'next-static',
    make: nextApp,
    files: { ...nextLayout, 'next.config.ts': "export default { output: 'export' }\n" },
  },
  {
    name: 'nuxt',
    files: {
      'package.json': json({
        name: 'app',
        private: true,
        type: 'module',
        scripts: { build: 'nuxt build', generate: 'nuxt generate' },
        dependencies: { nuxt: 'latest', vue: 'latest', 'vue-router': 'latest' },
      }),
      'nuxt.config.ts': 'export default defineNuxtConfig({ telemetry: false })\n',
      'app.vue': '<template><h1>nuxt</h1></template>\n',
    },
  },
  { name: 'react-router', make: 'npx --yes create-react-router@latest app --yes --no-install --no-git-init' },
  {
    name: 'eleventy',
    files: {
      'package.json': json({ name: 'app', private: true, devDependencies: { '@11ty/eleventy': '^3' } }),
      'index.md': '# eleventy\n',
    },
  },
  {
    name: 'docusaurus',
    make: 'npx --yes create-docusaurus@latest app classic --javascript --skip-install --git-strategy copy',
  },
  {
    name: 'fastify',
    files: {
      'package.json': json({ name: 'app', private: true, main: 'server.js', dependencies: { fastify: '^5' } }),
      'server.js': `const app = require('fastify')()\napp.get('/', () => 'fastify')\napp.listen({ port: ${listen} })\n`,
    },
  },
  { name: 'express', files: express },
  {
    name: 'hono',
    files: {
      'package.json': json({
        name: 'app',
        type: 'module',
        scripts: { start: 'node index.js' },
        dependencies: { hono: 'latest', '@hono/node-server': 'latest' },
      }),
      // The port of the template is fixed: it is the default of PORT.
      'index.js':
        "import { serve } from '@hono/node-server'\nimport { Hono } from 'hono'\n" +
        "serve({ fetch: new Hono().get('/', (c) => c.text('hono')).fetch, port: 3000 })\n",
    },
  },
  {
    name: 'workspaces',
    files: {
      'package.json': json({ name: 'all', private: true, workspaces: ['packages/*'] }),
      'packages/lib/package.json': json({ name: '@m/lib', version: '1.0.0', main: 'index.js' }),
      'packages/lib/index.js': "module.exports = 'workspaces'\n",
      'packages/web/package.json': json({
        name: 'web',
        private: true,
        scripts: { start: 'node server.js' },
        dependencies: { '@m/lib': '*' },
      }),
      'packages/web/server.js': `require('http').createServer((_, answer) => answer.end(require('@m/lib'))).listen(${listen})\n`,
    },
    after: 'npm install --package-lock-only',
    rootDirectory: 'packages/web',
  },
  managed('pnpm@10', 'pnpm@10 install --lockfile-only'),
  managed('yarn@1', 'yarn@1 install'),
  managed('yarn@4', '@yarnpkg/cli-dist@4 install'),
  managed('bun', 'bun install --lockfile-only'),
]
