import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.startsWith('generated'))
  .map((name) => join('src', name))

type Import = { from: string; to: string; typeOnly: boolean }

const imports: Import[] = files.flatMap((from) => {
  const text = readFileSync(join(root, from), 'utf8')
  return [...text.matchAll(/^(?:import|export)\s+(type\s+)?[^;]*?from '([^']+)'/gms)].map(([, type, target]) => ({
    from,
    to: target!.startsWith('.') ? relative(root, join(root, dirname(from), target!)) : target!,
    typeOnly: type !== undefined,
  }))
})

const offenders = (breaks: (one: Import) => boolean) => imports.filter(breaks).map(({ from, to }) => `${from} → ${to}`)
const within = (path: string, folder: string) => path.startsWith(`src/${folder}/`)

describe('arrows run one way', () => {
  test('routes never import Prisma', () => {
    expect(offenders(({ from, to }) => within(from, 'routes') && /prisma|generated/.test(to))).toEqual([])
  })

  test('services never import Fastify, http, routes or an engine', () => {
    const forbidden = (to: string) =>
      /^@?fastify/.test(to) || ['http', 'routes', 'engines'].some((room) => within(to, room))
    expect(offenders(({ from, to }) => within(from, 'services') && forbidden(to))).toEqual([])
  })

  test('engines never import each other, routes or http', () => {
    const room = (path: string) => path.split('/')[2]
    const breaks = ({ from, to }: Import) =>
      within(from, 'engines') &&
      (within(to, 'routes') || within(to, 'http') || (within(to, 'engines') && room(from) !== room(to)))
    expect(offenders(breaks)).toEqual([])
  })

  test('schemas import nothing of ours but schemas', () => {
    const breaks = ({ from, to }: Import) => within(from, 'schemas') && to.startsWith('src/') && !within(to, 'schemas')
    expect(offenders(breaks)).toEqual([])
  })

  test('the DNS text module imports nothing of ours', () => {
    expect(offenders(({ from, to }) => within(from, 'dns') && to.startsWith('src/') && !within(to, 'dns'))).toEqual([])
  })

  test('the store of certificates imports no engine, route or http', () => {
    const forbidden = (to: string) => ['http', 'routes', 'engines'].some((room) => within(to, room))
    expect(offenders(({ from, to }) => within(from, 'certificates') && forbidden(to))).toEqual([])
  })

  test('config, errors and ids are leaves', () => {
    const leaves = ['src/config.ts', 'src/errors.ts', 'src/ids.ts']
    expect(offenders(({ from, to }) => leaves.includes(from) && to.startsWith('src/'))).toEqual([])
  })

  test('only config.ts reads the environment', () => {
    const readers = files.filter((file) => /process\.env\b/.test(readFileSync(join(root, file), 'utf8')))
    expect(readers).toEqual(['src/config.ts'])
  })
})

describe('the code', () => {
  test('says in its first line what each file is for', () => {
    const silent = files.filter((file) => !/^(#!.*\n)?\/\/ \S/.test(readFileSync(join(root, file), 'utf8')))
    expect(silent).toEqual([])
  })

  test('has the same noun in routes, schemas, services and tests', () => {
    const stems = (folder: string) =>
      new Set(readdirSync(join(root, folder)).map((name) => name.replace(/(\.test)?\.ts$/, '')))
    const [routes, tests] = [stems('src/routes'), stems('test/routes')]
    // Helpers and pages that are no resource, and what is tested with its parent.
    for (const name of ['route', 'platform', 'deployment-logs', 'account']) routes.delete(name)
    expect([...routes].filter((name) => !tests.has(name))).toEqual([])
  })

  test('keeps no secret and no generated file in git', () => {
    const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n')
    expect(tracked.filter((path) => /^(dist|node_modules|\.berth|src\/generated)\/|\.env$/.test(path))).toEqual([])
  })
})
