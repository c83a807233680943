import { afterEach, expect, test } from 'vitest'
import { privateHosts } from '../../../src/sandbox/network/hosts.ts'
import { createSandbox, type Sandbox, type SandboxedCommand } from '../../../src/sandbox/sandbox.ts'
import type { Network } from '../../../src/services/deployments/builds.ts'
import { startWorld, type World } from './world.ts'

let world: World | undefined
let sandbox: Sandbox | undefined
afterEach(async () => {
  await world?.stop()
  await sandbox?.close()
})

test('the deployment’s setting decides what its server reaches, at each start', async () => {
  const commands: SandboxedCommand[] = []
  const plain = await createSandbox('none', { searchPath: process.env.PATH! })
  sandbox = plain
  let network: Network = 'none'
  world = await startWorld(
    'none',
    {},
    {
      sandbox: {
        ...plain,
        run(command) {
          commands.push(command)
          return plain.run(command)
        },
      },
      settingsOf: async () => ({ environment: {}, network }),
      privateHosts: async () => ['registry.internal:4873'],
    },
  )
  await world.deploy('site')
  for (network of ['none', 'registry', 'public'] as const) {
    await world.servers.ready('site')
    await world.servers.retire('site')
  }
  const hosts = ['registry.internal:4873']
  expect(commands.map(({ network }) => network)).toEqual([
    null,
    { reach: 'registry', private: hosts },
    { reach: 'public', private: hosts },
  ])
})

test('the private hosts are those of the registry and of the repositories, with their ports', () => {
  expect(privateHosts('https://registry.example/npm/', 'http://git.internal/{repo}.git')).toEqual([
    'registry.example:443',
    'git.internal:80',
  ])
  expect(privateHosts('https://registry.example/', 'file:///srv/{repo}.git')).toEqual(['registry.example:443'])
  expect(privateHosts('http://127.0.0.1:4873/', 'https://git.internal:8443/{repo}')).toEqual([
    '127.0.0.1:4873',
    'git.internal:8443',
  ])
})
