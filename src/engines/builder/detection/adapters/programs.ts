// Site generators that are programs on the machine instead of npm packages.
import { type Adapter, files } from '../../project/adapter.ts'

export const hugo: Adapter = {
  name: 'hugo',
  title: 'Hugo',
  files: ['hugo.toml', 'hugo.yaml', 'hugo.yml', 'hugo.json', 'config.toml', 'config/_default/hugo.toml'],
  matches: ({ has, hasFolder }) =>
    !has('config.toml') || hasFolder('content') || hasFolder('archetypes') || hasFolder('themes'),
  build: 'hugo',
  tool: 'hugo',
  plan: () => files(['public'], 'Hugo writes to public.'),
}

export const jekyll: Adapter = {
  name: 'jekyll',
  title: 'Jekyll',
  files: ['_config.yml', '_config.yaml'],
  matches: ({ hasFolder }) => ['_posts', '_layouts', '_includes', '_sass'].some(hasFolder),
  build: 'jekyll build',
  tool: 'jekyll',
  plan: () => files(['_site'], 'Jekyll writes to _site.'),
}
