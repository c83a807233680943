import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const filesOf = (tree: string) =>
  readdirSync(join(root, tree), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name) && !/(^|\/)(generated|node_modules|dist)\//.test(name))
    .map((name) => join(tree, name))
const files = filesOf('src')

type Import = { from: string; to: string; typeOnly: boolean }

function importsOf(from: string): Import[] {
  const text = readFileSync(join(root, from), 'utf8')
  return [...text.matchAll(/^(?:import|export)\s+(type\s+)?[^;]*?from '([^']+)'/gms)].map(([, type, target]) => ({
    from,
    to: target!.startsWith('.') ? relative(root, join(root, dirname(from), target!)) : target!,
    typeOnly: type !== undefined,
  }))
}

const imports = files.flatMap(importsOf)

const offenders = (breaks: (one: Import) => boolean) => imports.filter(breaks).map(({ from, to }) => `${from} → ${to}`)
const within = (path: string, folder: string) => path.startsWith(`src/${folder}/`)
const memberOf = (path: string, parent: string) => (within(path, parent) ? path.split('/')[2]! : undefined)

/** The top folders of `src` and the folders each may import; unlisted ones may import none. */
const arrows: Record<string, string[]> = {
  'cli.ts': ['commands'],
  commands: ['config.ts', 'roles', 'api', 'schemas', 'services', 'platform'],
  'config.ts': ['config'],
  config: ['schemas'],
  roles: ['config.ts', 'api', 'engines', 'tls', 'jobs', 'services', 'sandbox', 'embedded-postgres', 'platform'],
  api: ['config.ts', 'schemas', 'services', 'dns', 'platform'],
  engines: ['config.ts', 'tls', 'jobs', 'schemas', 'services', 'dns', 'sandbox', 'platform'],
  tls: ['config.ts', 'services', 'platform'],
  jobs: ['platform'],
  services: ['config.ts', 'generated', 'schemas', 'jobs', 'dns', 'platform'],
  schemas: ['platform'],
  dns: [],
  sandbox: ['platform', 'dns'],
  'embedded-postgres': [],
  platform: ['generated', 'dns'],
}

const top = (path: string) => path.split('/')[1]!

/** The nouns of the services, lowest first: each may import only those before it. */
const nouns = [
  ...['idempotency', 'limits', 'secrets', 'identity', 'names', 'events', 'quotas', 'tokens', 'accounts', 'webhooks'],
  ...['takedowns', 'projects', 'instances', 'uploads', 'deployments', 'production'],
  ...['domains', 'dns', 'verification', 'certificates', 'internal-ca'],
  ...['traffic', 'crons', 'pushes', 'people', 'tickets', 'mail', 'search', 'oidc'],
  ...['backups', 'nodes', 'figures', 'jobs', 'suspension'],
]

describe('arrows run one way', () => {
  test('between the top folders', () => {
    const breaks = ({ from, to }: Import) =>
      to.startsWith('src/') && top(from) !== top(to) && !arrows[top(from)]?.includes(top(to))
    expect(offenders(breaks)).toEqual([])
    expect(Object.keys(arrows).sort()).toEqual([...new Set(files.map(top))].sort())
  })

  test('between the nouns of the services', () => {
    const level = (path: string) => nouns.indexOf(memberOf(path, 'services')!)
    const breaks = ({ from, to }: Import) =>
      within(from, 'services') && within(to, 'services') && level(to) > level(from)
    expect(offenders(breaks)).toEqual([])
    const found = files.flatMap((file) => memberOf(file, 'services') ?? [])
    expect([...nouns].sort()).toEqual([...new Set(found)].sort())
  })

  test('only platform and services know Prisma, only the API knows Fastify', () => {
    expect(offenders(({ from, to }) => /prisma/.test(to) && !/^src\/(platform|roles|commands)/.test(from))).toEqual([])
    expect(offenders(({ from, to }) => /^@?fastify/.test(to) && !within(from, 'api'))).toEqual([])
  })

  test('SQL stands in the files of statements alone', () => {
    const elsewhere = files.filter((file) => !/(^|[/-])statements\.ts$/.test(file))
    const holds = (pattern: RegExp) => elsewhere.filter((file) => pattern.test(readFileSync(join(root, file), 'utf8')))
    expect(holds(/[`'"]\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH) /)).toEqual([])
    expect(holds(/\bstatement\(\s*['`]|Prisma\.sql|\$(execute|query)Raw(?!Unsafe\(text)/)).toEqual([])
    expect(holds(/\$queryRawUnsafe\(/)).toEqual(['src/platform/database/database.ts'])
  })

  test('engines never import each other', () => {
    const breaks = ({ from, to }: Import) => {
      const [own, other] = [memberOf(from, 'engines'), memberOf(to, 'engines')]
      return own !== undefined && other !== undefined && own !== other
    }
    expect(offenders(breaks)).toEqual([])
  })

  test('engines and nouns are entered by their index.ts alone', () => {
    const breaks = (parent: string) => (one: Import) => {
      const inner = memberOf(one.to, parent)
      return inner !== undefined && memberOf(one.from, parent) !== inner && one.to !== `src/${parent}/${inner}/index.ts`
    }
    expect([...offenders(breaks('engines')), ...offenders(breaks('services'))]).toEqual([])
  })

  test('documents are written by their thread alone, and the API only sends them', () => {
    const writers = /^(marked|@scalar\/.*)$/
    const elsewhere = ({ from, to }: Import) => writers.test(to) && !within(from, 'api/documents')
    const loaded = ({ from, to, typeOnly }: Import) =>
      !typeOnly && within(to, 'api/documents') && !within(from, 'api/documents') && !to.endsWith('/documents.ts')
    expect(offenders((one) => elsewhere(one) || loaded(one))).toEqual([])
    expect(
      imports.filter(({ from, typeOnly }) => from.endsWith('/documents.ts') && !typeOnly).map(({ to }) => to),
    ).toEqual([
      'node:events',
      'node:worker_threads',
      'src/platform/installation.ts',
      'src/api/http/responses/public-responses.ts',
    ])
  })

  test('errors and ids are leaves', () => {
    const leaf = /^src\/platform\/(ids\.ts|errors\.ts|errors\/.*)$/
    const breaks = ({ from, to }: Import) => leaf.test(from) && to.startsWith('src/') && !within(to, 'platform/errors')
    expect(offenders(breaks)).toEqual([])
  })

  test.each(['src', 'cli', 'dashboard', 'sdk', 'bench'])('in no circle of %s, not even of types or folders', (tree) => {
    const all = filesOf(tree).flatMap(importsOf)
    expect(circles(all, (file) => file)).toEqual([])
    // A door is above everything in its folder.
    expect(circles(all, (file) => (file.endsWith('/index.ts') ? file : dirname(file)))).toEqual([])
  })

  test('only config.ts reads the environment; memory.ts hands it on', () => {
    const readers = files.filter((file) => /process\.env\b/.test(readFileSync(join(root, file), 'utf8')))
    expect(readers).toEqual(['src/config.ts', 'src/commands/memory.ts'])
  })
})

/** Import cycles between places, each as one path. */
function circles(all: Import[], placeOf: (file: string) => string): string[] {
  const targets = new Map<string, Set<string>>()
  for (const [from, to] of all.map(({ from, to }) => [placeOf(from), placeOf(to)] as const)) {
    if (from !== to) targets.set(from, (targets.get(from) ?? new Set()).add(to))
  }
  const done = new Set<string>()
  const found: string[] = []
  const visit = (place: string, way: string[]): void => {
    if (way.includes(place)) return void found.push([...way.slice(way.indexOf(place)), place].join(' → '))
    if (done.has(place)) return
    for (const next of targets.get(place) ?? []) visit(next, [...way, place])
    done.add(place)
  }
  for (const place of targets.keys()) visit(place, [])
  return found
}

describe('the code', () => {
  test('has two files at the root of src', () => {
    expect(files.filter((file) => file.split('/').length === 2)).toEqual(['src/cli.ts', 'src/config.ts'])
  })

  test('says in its first line what each file is for', () => {
    const silent = files.filter((file) => !/^(#!.*\n)?\/\/ \S/.test(readFileSync(join(root, file), 'utf8')))
    expect(silent).toEqual([])
  })

  test('has the same noun in routes, schemas, services and tests', () => {
    const stems = (folder: string) =>
      new Set(readdirSync(join(root, folder)).map((name) => name.replace(/(\.test)?\.ts$/, '')))
    const [routes, tests] = [stems('src/api/routes'), stems('test/api/routes')]
    // Helpers, pages that are no resource, and files tested with their parent.
    for (const name of ['route', 'platform', 'deployment-logs']) routes.delete(name)
    expect([...routes].filter((name) => !tests.has(name))).toEqual([])
  })

  test('keeps no secret and no generated file in git', () => {
    const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n')
    expect(tracked.filter((path) => /^(dist|node_modules|\.berth|src\/generated)\/|\.env$/.test(path))).toEqual([])
  })
})

describe('the pages on the code', () => {
  const internals = readdirSync(join(root, 'docs/internals')).map((name) => join('docs/internals', name))
  const texts = new Map(
    ['ARCHITECTURE.md', 'CONTRIBUTING.md', ...internals].map((page) => [page, readFileSync(join(root, page), 'utf8')]),
  )
  const found = (pattern: RegExp) =>
    [...texts].flatMap(([page, text]) => [...text.matchAll(pattern)].map((match) => ({ page, match })))

  test('name files that are there', () => {
    const named = found(/`((?:src|test|prisma|bench|dashboard|cli|sdk|docs)\/[\w./-]+)`/g)
    expect(named.length).toBeGreaterThan(150)
    const missing = named.filter(({ match }) => !existsSync(join(root, match[1]!)))
    expect(missing.map(({ page, match }) => `${page}: ${match[1]}`)).toEqual([])
  })

  test('name functions in the file that has them', () => {
    const named = found(/`(\w+)`(?:,|\sin|\s\()\s*`(src\/[\w./-]+\.ts)`/g)
    expect(named.length).toBeGreaterThan(100)
    const has = (name: string, file: string) =>
      new RegExp(`^export (async )?(function\\*?|const|class|type) ${name}\\b`, 'm').test(
        readFileSync(join(root, file), 'utf8'),
      )
    const missing = named.filter(({ match: [, name, file] }) => !has(name!, file!))
    expect(missing.map(({ page, match: [text] }) => `${page}: ${text}`)).toEqual([])
  })

  test('list every page of docs/internals in its index', () => {
    const index = texts.get('docs/internals/README.md')!
    const names = internals.map((page) => page.slice('docs/internals/'.length)).filter((name) => name !== 'README.md')
    expect(names.filter((name) => !index.includes(`](${name})`))).toEqual([])
  })

  test('ARCHITECTURE.md has the arrows, in at most 1,500 words', () => {
    const page = texts.get('ARCHITECTURE.md')!
    const table = [...page.matchAll(/^\| `([\w.-]+)` \| [^|]+ \| ([^|]+) \|$/gm)].map(([, folder, targets]) => [
      folder!,
      [...targets!.matchAll(/`([\w.-]+)`/g)].map(([, target]) => target!),
    ])
    expect(Object.fromEntries(table)).toEqual({ ...arrows, generated: [] })
    expect(page.split(/\s+/).length).toBeLessThanOrEqual(1_500)
  })
})

test('no test compares wall time or CPU time, which depend on what else the machine does', () => {
  const tests = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.test.ts'),
  )
  const clocks = /\b(?:cpuUsage|hrtime|timerify)\b|\b(?:performance|Date)\.now\(\) - (?:start|began|before)/
  const measuring = tests.filter((name) => clocks.test(readFileSync(join(root, 'test', name), 'utf8')))
  expect(measuring.filter((name) => name !== 'architecture.test.ts')).toEqual([])
})
