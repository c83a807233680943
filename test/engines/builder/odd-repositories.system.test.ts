import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Platform, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 120_000 })

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform({ BUILD_CONCURRENCY: '2' })
})
afterAll(() => platform.stop())

const json = (value: object) => JSON.stringify(value)

const deployed = async (name: string, files: Record<string, string>, body: object = {}) => {
  await platform.project(name, files, body)
  const id = await platform.deploy(name, { production: true })
  return { id, deployment: await platform.settled(id) }
}

describe('a repository that is not what it seems', () => {
  test('of several projects is told which folders are meant, whether it is built or not', async () => {
    const apps = {
      'apps/web/package.json': json({ name: 'web' }),
      'apps/web/vite.config.js': '',
      'apps/api/package.json': json({ name: 'api', scripts: { start: 'node server.js' } }),
      'packages/ui/package.json': json({ name: 'ui' }),
    }
    const root = { name: 'all', private: true, workspaces: ['apps/*', 'packages/*'] }
    const said = 'Set rootDirectory to the project to deploy: apps/api (Node.js server), apps/web (Vite).'
    const built = await deployed('built', { ...apps, 'package.json': json({ ...root, scripts: { build: 'true' } }) })
    expect(built.deployment.error).toMatchObject({ code: 'output_missing', message: expect.stringContaining(said) })
    const plain = await deployed('plain', { ...apps, 'README.md': '' })
    expect(plain.deployment.error).toMatchObject({ code: 'output_missing', message: expect.stringContaining(said) })
  })

  test('with a package.json that is no JSON is told so', async () => {
    const { deployment } = await deployed('torn', { 'package.json': '{"scripts": {', 'src/main.js': '' })
    expect(deployment.error).toMatchObject({ code: 'output_missing', message: expect.stringContaining('was not read') })
    expect(deployment.warnings).toEqual([
      { code: 'file_ignored', message: 'It is not a JSON object, so it was not read.', file: 'package.json' },
    ])
  })

  test('whose install fails for a known reason is told what was printed, and what helps', async () => {
    const installCommand = 'echo " ERR_PNPM_OUTDATED_LOCKFILE  Cannot install." && exit 1'
    const files = { 'package.json': json({ scripts: { build: 'true' } }) }
    const { deployment } = await deployed('outdated', files, { settings: { installCommand } })
    expect(deployment.error.code).toBe('install_failed')
    expect(deployment.error.message).toMatch(
      / exited with 1: ERR_PNPM_OUTDATED_LOCKFILE {2}Cannot install\. pnpm-lock\.yaml is out of sync with package\.json: run pnpm install/,
    )
  })

  test('whose server has its own modules is published without the others', async () => {
    const server =
      "import { existsSync } from 'node:fs'\nimport { createServer } from 'node:http'\nimport word from 'word'\n" +
      "console.log(word + ' ' + existsSync('node_modules') + ' ' + existsSync('data.json'))\n" +
      'createServer((_, answer) => answer.end(word)).listen(process.env.PORT)\n'
    const build = [
      'mkdir -p node_modules/large .output/server/node_modules/word',
      'cp server.mjs .output/server/index.mjs',
      `echo "export default 'own'" > .output/server/node_modules/word/index.mjs`,
      `echo '{"exports":"./index.mjs"}' > .output/server/node_modules/word/package.json`,
    ].join(' && ')
    const files = {
      'package.json': json({ scripts: { build }, dependencies: { nuxt: '^4' } }),
      'server.mjs': server,
      'data.json': '{}',
    }
    const { id, deployment } = await deployed('nitro', files, { settings: { installCommand: 'true' } })
    expect(deployment).toMatchObject({ state: 'READY', detected: { framework: 'nuxt', kind: 'server' } })
    expect(await platform.log(id)).toContain('run: own false true')
  })
})
