// Servers without a web framework: `npm start`, or the main file.
import { type Adapter, type Facts, server } from '../../project/adapter.ts'
import { plainFolder } from '../../project/config-text.ts'

const libraries = [
  ['@nestjs/core', 'NestJS'],
  ['fastify', 'Fastify'],
  ['express', 'Express'],
  ['@hono/node-server', 'Hono'],
  ['koa', 'Koa'],
  ['@hapi/hapi', 'hapi'],
  ['polka', 'Polka'],
  ['restify', 'Restify'],
  ['h3', 'h3'],
] as const

export const usualFiles = [
  'server.js',
  'index.js',
  'app.js',
  'server.mjs',
  'index.mjs',
  'app.mjs',
  'src/index.js',
  'src/server.js',
]

const libraryOf = ({ manifest }: Facts) => libraries.find(([name]) => manifest.dependencies.has(name))

/** Whether a script runs a long-lived program other than a bundler's development server. */
function runsProgram(script: string, { scripts }: Facts['manifest']): boolean {
  const program =
    /(^|[\s;&])(node|tsx|ts-node|bun|nest start|fastify start|nodemon|pm2-runtime|srvx|\.\/bin\/\S+)(\s|$)/
  if (program.test(script)) return true
  const other = /(?:^|&&\s?)(?:npm|pnpm|yarn|bun) run ([\w:.-]{1,100})\s{0,20}$/.exec(script)?.[1]
  return other !== undefined && program.test(scripts.get(other) ?? '')
}

/** The file to start: one in the repository, or `main` if the build writes it. */
const mainOf = (facts: Facts): string | null => {
  const main = facts.manifest.main && plainFolder(facts.manifest.main)
  if (main && facts.buildText !== '' && /^(dist|build|lib|out)\//.test(main)) return main
  const names = [facts.manifest.main, ...usualFiles]
  return names.map((name) => name && plainFolder(name)).find((name) => name && facts.has(name)) || null
}

function planOf(facts: Facts) {
  const start = facts.manifest.scripts.get('start')
  const library = libraryOf(facts)
  const because = library ? [`package.json depends on ${library[0]}.`] : []
  if (start !== undefined) {
    const production = facts.manifest.scripts.get('start:prod')
    // NestJS's start script compiles again.
    if (library?.[0] === '@nestjs/core' && production !== undefined) {
      return server('npm run start:prod', ...because, 'package.json has a script start:prod.')
    }
    return server('npm start', ...because, 'package.json has a start script.')
  }
  const main = mainOf(facts)
  if (main === null) return server('npm start', ...because)
  const named = facts.manifest.main !== null && plainFolder(facts.manifest.main) === main
  return server(`node '${main}'`, ...because, named ? `main of package.json is ${main}.` : `There is ${main}.`)
}

/** Detected by a server library and a way to start it. */
export const nodeLibrary: Adapter = {
  name: 'node',
  title: 'Node.js server',
  matches: (facts) => {
    const start = facts.manifest.scripts.get('start')
    return (
      libraryOf(facts) !== undefined &&
      (start === undefined ? mainOf(facts) !== null : runsProgram(start, facts.manifest))
    )
  },
  build: null,
  plan: planOf,
}

/** Detected last, by a start script that runs a program, a file that listens, or a server.js. */
export const nodeScript: Adapter = {
  ...nodeLibrary,
  matches({ manifest, hasManifest, listener, has }) {
    const start = manifest.scripts.get('start')
    const isSite = has('index.html') || has('public/index.html')
    // With only a start script, there is nothing else to serve.
    if (start !== undefined && !manifest.scripts.has('build') && !isSite && !manifest.workspaces) return true
    if (start !== undefined) return runsProgram(start, manifest)
    return (listener !== null || (hasManifest && has('server.js'))) && !isSite && !manifest.scripts.has('build')
  },
}
