// Starters whose generators take their templates from another host than the package registry: the same, as a few files.
import { json, listen, type Starter } from './starter.ts'

const nuxt = (build: string) => ({
  'package.json': json({
    name: 'app',
    private: true,
    type: 'module',
    scripts: { build },
    dependencies: { nuxt: '^4', vue: '^3', 'vue-router': '^4' },
  }),
  'nuxt.config.ts': 'export default defineNuxtConfig({ telemetry: false })\n',
  'app.vue': '<template><h1>nuxt</h1></template>\n',
})

const page = (word: string) =>
  "import { Links, Meta, Outlet, Scripts } from 'react-router'\n" +
  'export const Layout = ({ children }) => (\n' +
  `  <html lang="en"><head><title>${word}</title><Meta /><Links /></head><body>{children}<Scripts /></body></html>\n` +
  ')\nexport default () => <Outlet />\n'

const reactRouter = (config: string) => ({
  'package.json': json({
    name: 'app',
    private: true,
    type: 'module',
    scripts: { build: 'react-router build', start: 'react-router-serve ./build/server/index.js' },
    dependencies: {
      '@react-router/node': '8.4.0',
      '@react-router/serve': '8.4.0',
      isbot: '^5',
      react: '^19',
      'react-dom': '^19',
      'react-router': '8.4.0',
    },
    devDependencies: { '@react-router/dev': '8.4.0', vite: '^8' },
  }),
  'vite.config.js':
    "import { reactRouter } from '@react-router/dev/vite'\nexport default { plugins: [reactRouter()] }\n",
  'react-router.config.js': `export default { ${config} }\n`,
  'app/root.jsx': page('react-router'),
  'app/routes.js': "import { index } from '@react-router/dev/routes'\nexport default [index('home.jsx')]\n",
  'app/home.jsx': 'export default () => <h1>react-router</h1>\n',
})

const turbo = (manager: string) => ({
  'package.json': json({
    name: 'all',
    private: true,
    packageManager: manager,
    scripts: { build: 'turbo run build' },
    devDependencies: { turbo: '^2' },
    workspaces: ['apps/*', 'packages/*'],
  }),
  'turbo.json': json({ tasks: { build: { dependsOn: ['^build'], outputs: ['dist/**'] } } }),
  '.gitignore': 'node_modules\n.turbo\ndist\n',
  'packages/ui/package.json': json({
    name: '@repo/ui',
    version: '0.0.0',
    type: 'module',
    exports: './dist/index.js',
    scripts: { build: 'mkdir -p dist && cp src/index.js dist/index.js' },
    dependencies: { ms: '^2' },
  }),
  'packages/ui/src/index.js': "import ms from 'ms'\nexport const word = 'turbo ' + ms(60000)\n",
  'apps/web/package.json': json({
    name: 'web',
    private: true,
    type: 'module',
    scripts: { build: 'vite build' },
    dependencies: { '@repo/ui': manager.startsWith('pnpm') ? 'workspace:*' : '*' },
    devDependencies: { vite: '^7' },
  }),
  'apps/web/index.html': '<!doctype html><title>turbo</title><script type="module" src="/main.js"></script>\n',
  'apps/web/main.js': "import { word } from '@repo/ui'\ndocument.title = word\n",
  'apps/api/package.json': json({
    name: 'api',
    private: true,
    type: 'module',
    scripts: { build: 'mkdir -p dist && cp server.js dist/', start: 'node dist/server.js' },
    dependencies: {
      '@repo/ui': manager.startsWith('pnpm') ? 'workspace:*' : '*',
      hono: '^4',
      '@hono/node-server': '^1',
    },
  }),
  'apps/api/server.js':
    "import { serve } from '@hono/node-server'\nimport { word } from '@repo/ui'\nimport { Hono } from 'hono'\n" +
    `serve({ fetch: new Hono().get('/', (c) => c.text(word)).fetch, port: Number(${listen}) })\n`,
  ...(manager.startsWith('pnpm') && { 'pnpm-workspace.yaml': 'packages:\n  - apps/*\n  - packages/*\n' }),
})

const astro = (dependencies: Record<string, string>, config = 'export default {}\n') => ({
  'package.json': json({ name: 'app', type: 'module', scripts: { build: 'astro build' }, dependencies }),
  'astro.config.mjs': config,
  'src/pages/index.astro': '<html lang="en"><head><title>astro</title></head><body><h1>astro</h1></body></html>\n',
})

export const fromFiles: Starter[] = [
  { name: 'astro', files: astro({ astro: 'latest' }) },
  // The last one whose compiler is no binary of each system.
  { name: 'astro-5', files: astro({ astro: '^5' }) },
  {
    name: 'astro-5-node',
    files: astro(
      { astro: '^5', '@astrojs/node': '^9' },
      "import node from '@astrojs/node'\n" +
        "export default { output: 'server', adapter: node({ mode: 'standalone' }) }\n",
    ),
  },
  { name: 'nuxt', files: nuxt('nuxt build') },
  { name: 'nuxt-static', files: nuxt('nuxt generate') },
  { name: 'react-router', files: reactRouter('') },
  { name: 'react-router-spa', files: reactRouter('ssr: false') },
  {
    name: 'remix',
    files: {
      'package.json': json({
        name: 'app',
        private: true,
        type: 'module',
        scripts: { build: 'remix vite:build', start: 'remix-serve ./build/server/index.js' },
        dependencies: {
          '@remix-run/node': '^2',
          '@remix-run/react': '^2',
          '@remix-run/serve': '^2',
          isbot: '^4',
          react: '^18',
          'react-dom': '^18',
        },
        devDependencies: { '@remix-run/dev': '^2', vite: '^5' },
      }),
      'vite.config.js': "import { vitePlugin } from '@remix-run/dev'\nexport default { plugins: [vitePlugin()] }\n",
      'app/root.jsx': page('remix').replace("'react-router'", "'@remix-run/react'"),
      'app/routes/_index.jsx': 'export default () => <h1>remix</h1>\n',
    },
  },
  {
    name: 'eleventy',
    files: {
      'package.json': json({
        name: 'app',
        private: true,
        // Newer ones need packages that a registry may not have.
        devDependencies: { '@11ty/eleventy': '3.1.2' },
      }),
      'index.md': '# eleventy\n',
    },
  },
  {
    name: 'gatsby',
    files: {
      'package.json': json({
        name: 'app',
        private: true,
        scripts: { build: 'gatsby build' },
        dependencies: { gatsby: '^5', react: '^18', 'react-dom': '^18' },
        // Its own fetches a library from another host.
        overrides: { sharp: '^0.34' },
      }),
      'src/pages/index.js': "import * as React from 'react'\nexport default () => <h1>gatsby</h1>\n",
    },
  },
  {
    name: 'react-scripts',
    files: {
      'package.json': json({
        name: 'app',
        private: true,
        scripts: { start: 'react-scripts start', build: 'react-scripts build' },
        dependencies: { react: '^18', 'react-dom': '^18', 'react-scripts': '^5' },
      }),
      'public/index.html': '<!doctype html><html lang="en"><title>react-scripts</title><div id="root"></div></html>\n',
      'src/index.js': "import { createRoot } from 'react-dom/client'\ncreateRoot(document.body).render('hello')\n",
    },
  },
  {
    name: 'solidstart',
    files: {
      'package.json': json({
        name: 'app',
        type: 'module',
        scripts: { build: 'vinxi build', start: 'vinxi start' },
        dependencies: { '@solidjs/router': '^0.15', '@solidjs/start': '^1', 'solid-js': '^1.9', vinxi: '^0.5' },
      }),
      'app.config.js': "import { defineConfig } from '@solidjs/start/config'\nexport default defineConfig({})\n",
      'src/app.jsx': 'export default () => <h1>solidstart</h1>\n',
      'src/entry-client.jsx':
        "import { mount, StartClient } from '@solidjs/start/client'\nmount(() => <StartClient />, document.getElementById('app'))\n",
      'src/entry-server.jsx':
        "import { createHandler, StartServer } from '@solidjs/start/server'\n" +
        'const page = ({ assets, children, scripts }) => (\n' +
        '  <html lang="en"><head>{assets}</head><body><div id="app">{children}</div>{scripts}</body></html>\n)\n' +
        'export default createHandler(() => <StartServer document={page} />)\n',
    },
  },
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
    name: 'express-typescript',
    files: {
      'package.json': json({
        name: 'app',
        private: true,
        main: 'dist/index.js',
        scripts: { build: 'tsc' },
        engines: { node: '>=18' },
        dependencies: { express: '^5' },
        devDependencies: { '@types/express': '^5', '@types/node': '^22', typescript: '^5' },
      }),
      '.nvmrc': 'lts/*\n',
      'tsconfig.json': json({
        compilerOptions: { outDir: 'dist', rootDir: 'src', module: 'nodenext', esModuleInterop: true, strict: true },
      }),
      'src/index.ts':
        "import express from 'express'\n" +
        `express().get('/', (_, answer) => void answer.send('typescript')).listen(Number(${listen}))\n`,
    },
  },
  {
    name: 'turbo-web',
    files: turbo('npm@11.6.0'),
    after: 'npm install --package-lock-only',
    rootDirectory: 'apps/web',
  },
  {
    name: 'turbo-api',
    files: turbo('npm@11.6.0'),
    after: 'npm install --package-lock-only',
    rootDirectory: 'apps/api',
  },
  {
    name: 'nx-web',
    files: {
      ...turbo('npm@11.6.0'),
      'package.json': json({
        name: 'all',
        private: true,
        scripts: { build: 'nx run-many -t build' },
        devDependencies: { nx: '^21' },
        workspaces: ['apps/*', 'packages/*'],
      }),
      'nx.json': json({ targetDefaults: { build: { dependsOn: ['^build'], outputs: ['{projectRoot}/dist'] } } }),
      'apps/web/package.json': json({
        name: 'web',
        private: true,
        type: 'module',
        scripts: { build: 'nx exec -- vite build' },
        dependencies: { '@repo/ui': '*' },
        devDependencies: { vite: '^7' },
      }),
    },
    after: 'npm install --package-lock-only',
    rootDirectory: 'apps/web',
  },
  {
    name: 'vue-cli',
    files: {
      'package.json': json({
        name: 'app',
        private: true,
        scripts: { serve: 'vue-cli-service serve', build: 'vue-cli-service build' },
        dependencies: { vue: '^3' },
        devDependencies: { '@vue/cli-service': '^5' },
      }),
      'public/index.html': '<!doctype html><html lang="en"><title>vue-cli</title><div id="app"></div></html>\n',
      'src/main.js': "import { createApp } from 'vue'\nimport App from './App.vue'\ncreateApp(App).mount('#app')\n",
      'src/App.vue': '<template><h1>vue-cli</h1></template>\n',
    },
  },
  {
    name: 'turbo-pnpm-api',
    files: turbo('pnpm@10.34.9'),
    after: 'npx --yes pnpm@10.34.9 install --lockfile-only',
    rootDirectory: 'apps/api',
  },
]
