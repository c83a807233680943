// The starters: each is made by its own generator from the package registry. Where that asks another host for its template,
// or there is none, it is a few files.
import { fromFiles } from './from-files.ts'
import { json, listen, type Starter } from './starter.ts'

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

const managed = (manager: string, lock: string, files = {}): Starter => ({
  name: manager.replace('@', '-'),
  files: { ...express, '.gitignore': 'node_modules\n.yarn\n.pnp.*\n', ...files },
  after: `npx --yes ${lock}`,
})

// A registry may have the newest of some of its packages, and not of others.
const angular = (options: string): Omit<Starter, 'name'> => ({
  make: `npx --yes @angular/cli@22.2.0 new app --defaults ${options} --skip-install --skip-git`,
  after: 'sed -i \'s/"[\^~]22/"22/\' package.json',
})

export const starters: Starter[] = [
  { name: 'vite-react', make: 'npm create --yes vite@latest app -- --template react --no-interactive' },
  { name: 'vite-vue', make: 'npm create --yes vite@latest app -- --template vue --no-interactive' },
  { name: 'vite-svelte', make: 'npm create --yes vite@latest app -- --template svelte --no-interactive' },
  { name: 'sveltekit', make: 'npx --yes sv create app --template minimal --types ts --no-add-ons --no-install' },
  { name: 'next-server', make: nextApp, files: nextLayout },
  {
    name: 'next-static',
    make: nextApp,
    files: { ...nextLayout, 'next.config.ts': "export default { output: 'export' }\n" },
  },
  {
    name: 'docusaurus',
    make: 'npx --yes create-docusaurus@latest app classic --javascript --skip-install --git-strategy copy',
    // A registry may not have all of the newest search, nor the newest binary of each system.
    after: "npm pkg set 'overrides.@docsearch/react=^3.9.0' 'overrides.@swc/html=1.16.2'",
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
  managed('yarn@4', '@yarnpkg/cli-dist@4 install --no-immutable', { '.yarnrc.yml': 'nodeLinker: node-modules\n' }),
  { ...managed('yarn@4', '@yarnpkg/cli-dist@4 install --no-immutable'), name: 'yarn-4-pnp' },
  managed('bun', 'bun install --lockfile-only'),
  { name: 'nest', make: 'npx --yes @nestjs/cli@latest new app --skip-install --skip-git -p npm' },
  { name: 'angular', ...angular('') },
  { name: 'angular-ssr', ...angular('--ssr') },
  { name: 'create-vue', make: 'npm create --yes vue@latest app -- --default' },
  { name: 'create-vue-router', make: 'npm create --yes vue@latest app -- --router' },
  { name: 'qwik', make: 'npm create --yes qwik@latest empty app' },
  {
    name: 'tanstack-start',
    // Its last step asks another host.
    make: 'npx --yes @tanstack/cli@latest create app --no-install --no-git --yes || test -f app/vite.config.ts',
  },
  { name: 'express-generator', make: 'npx --yes express-generator@4 --no-view app' },
  { name: 'fastify-cli', make: 'npx --yes fastify-cli@latest generate app' },
  ...fromFiles,
]
