import { describe, expect, test } from 'vitest'
import { outputMissing, outputsOf } from '../../../src/engines/builder/project/output.ts'
import type { Build } from '../../../src/services/deployments/builds.ts'

const build = (more: Partial<Build> = {}) => ({ framework: 'static', outputDirectory: null, ...more }) as Build

describe('where the output is looked for', () => {
  test.each([
    ['dist', 'dist'],
    ['./dist', 'dist'],
    ['dist/', 'dist'],
    ['a//b/./c/', 'a/b/c'],
    ['.', '.'],
    ['./', '.'],
  ])('an outputDirectory %s is the folder %s, whatever it holds', (outputDirectory, path) => {
    for (const isBuilt of [true, false]) {
      expect(outputsOf(build({ outputDirectory }), isBuilt)).toEqual([{ path, needsIndex: false }])
    }
  })

  test('the whole tree is an output only where nothing is built, and with an index.html', () => {
    expect(outputsOf(build(), false)).toEqual([{ path: '.', needsIndex: true }])
    expect(outputsOf(build(), true).map(({ path }) => path)).not.toContain('.')
    expect(outputsOf(build({ framework: 'vite' }), true)).toEqual([{ path: 'dist', needsIndex: false }])
  })
})

describe('an output that is missing is told with what was looked for, what was seen, and what helps', () => {
  function told(seen: string[], buildCommand: string | null, more: Partial<Build> = {}, apps: string[] = []): string {
    const project = build(more)
    const recipe = { build: buildCommand, hint: null }
    const failure = outputMissing(outputsOf(project, buildCommand !== null), { names: seen, apps }, recipe, project)
    expect(failure.code).toBe('output_missing')
    return failure.message
  }

  test('a Python project', () => {
    const message = told(['app.py', 'requirements.txt'], null)
    expect(message).toContain('looked for an index.html at the root')
    expect(message).toContain('requirements.txt: a Python project.')
    expect(message).toContain('If it builds a site, set buildCommand and outputDirectory')
  })

  test('a repository of several projects', () => {
    const apps = ['apps/web (Next.js)', 'apps/api (Node.js server)']
    expect(told(['apps', 'package.json'], 'npm run build', {}, apps)).toContain(
      'Set rootDirectory to the project to deploy: apps/web (Next.js), apps/api (Node.js server).',
    )
  })

  test('a container image', () => {
    expect(told(['Dockerfile', 'main.c'], null)).toContain('Dockerfile: a container image.')
  })

  test('a package.json without a build', () => {
    const message = told(['package.json', 'server.js'], null)
    expect(message).toContain('The folder has package.json, server.js.')
    expect(message).toContain('for a server, set framework to node')
  })

  test('a framework without a build script', () => {
    expect(told(['package.json', 'src'], null, { framework: 'vite' })).toContain(
      'The framework is vite, but there is no build: add a build script to package.json or set buildCommand.',
    )
  })

  test('a build that writes elsewhere', () => {
    const message = told(['package.json', 'www'], 'npm run build')
    expect(message).toContain('Found nothing to publish after npm run build: looked for dist, build with an index')
    expect(message).toContain('Set outputDirectory to the folder that the build writes to.')
  })

  test('a wrong outputDirectory', () => {
    const message = told(['package.json', 'dist'], 'npm run build', { outputDirectory: 'public' })
    expect(message).toContain('looked for public. The folder has dist, package.json.')
    expect(message).toContain('Set outputDirectory to the folder that the build writes to.')
  })

  test('a folder of pages without a first one', () => {
    expect(told(['.git', 'a.html'], null)).toContain(
      'The folder has a.html. Set outputDirectory to the folder with the site, or rootDirectory',
    )
  })

  test('an empty folder, and one with very many names', () => {
    expect(told([], null)).toContain('The folder is empty.')
    const many = Array.from({ length: 200 }, (_, at) => `f${at}`)
    expect(told(many, null)).toMatch(/The folder has f0, (f\d+, ){10}f\d+ and more\./)
  })

  test('names that would spoil a line of the log are shown by their numbers', () => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    expect(told(['a\nb\x1b[2J', 'c'], null)).not.toMatch(/[\x00-\x1f\x7f]/)
  })
})
