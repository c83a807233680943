import { expect, test } from 'vitest'
import { ServerUnavailable } from '../../../src/engines/servers/instance/failures.ts'
import { programsOf } from '../../../src/engines/servers/run/programs.ts'
import { hasGlibc, hostNode, nodeMajors } from '../../../src/sandbox/programs/node-versions.ts'
import { type Program, ProgramUnavailable } from '../../../src/sandbox/programs/programs.ts'

const other = nodeMajors.find((major) => major !== hostNode)!
const open = async ({ package: name, version }: Program) => ({ host: `${name}@${version}`, inside: '/x', bin: 'bin' })

test.runIf(hasGlibc())('a server runs with the Node and the package manager that it was built with', async () => {
  const manager = { name: 'yarn', version: '4.1.0' } as const
  const found = await programsOf({ open }, { node: other, manager })
  expect(found.map(({ host }) => host.replace(/\.\d+\.\d+$/, ''))).toEqual([
    `node-linux-${process.arch}@${other}`,
    '@yarnpkg/cli-dist@4',
  ])
})

test('a server without either runs with those of the machine', async () => {
  const none = { open: async () => expect.unreachable() }
  expect(await programsOf(none, {})).toEqual([])
  expect(await programsOf(undefined, { node: other })).toEqual([])
})

test('where one cannot be fetched, the server is unavailable and nobody blames it', async () => {
  const away = { open: () => Promise.reject(new ProgramUnavailable('The registry could not be reached.')) }
  const manager = { name: 'bun', version: '1.0.0' } as const
  await expect(programsOf(away, { manager })).rejects.toThrow(ServerUnavailable)
})
