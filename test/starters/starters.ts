// The starters: each is made by its own generator from the package registry, or is a few files.

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
  { name: 'astro', make: 'npm create --yes astro@latest app -- --template minimal --no-install --no-git --yes' },
  { name: 'sveltekit', make: 'npx --yes sv create app --template minimal --types ts --no-add-ons --no-install' },
  { name: 'next-server', make: nextApp },
  {
    name: 'next-static',
    make: nextApp,
    files: { 'next.config.ts': "export default { output: 'export' }\n" },
  },
  {
    name: 'nuxt',
    make: 'npx --yes nuxi@latest init app --template minimal --no-install --packageManager npm --no-gitInit --no-modules --force',
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
  { name: 'hono', make: 'npm create --yes hono@latest app -- --template nodejs --pm npm' },
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
