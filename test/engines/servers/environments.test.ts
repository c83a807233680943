// The settings of servers outlive the process and the database, sealed.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createEnvironments, type ServerSettings } from '../../../src/engines/servers/run/environments.ts'
import { createSnapshots } from '../../../src/platform/database/snapshots.ts'
import { createVault } from '../../../src/platform/secrets/secrets.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-environments-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const vault = createVault(Buffer.alloc(32, 1))
const log = pino({ level: 'silent' })

function start(settingsOf: (id: string) => Promise<ServerSettings>) {
  return createEnvironments(settingsOf, createSnapshots({ directory, vault, log }))
}
const there = async (id: string): Promise<ServerSettings> => ({ environment: { KEY: `hush-${id}` }, network: 'public' })
const away = () => Promise.reject(new Error('away'))

test('a server starts without the database with what was read last, also in the next process and the one after', async () => {
  const first = start(there)
  await first.read('dpl_1')
  await first.read('dpl_2')
  first.forget('dpl_2')
  await first.close()
  expect((await readFile(join(directory, 'servers'))).includes('hush')).toBe(false)
  for (let process = 0; process < 2; process++) {
    const next = start(away)
    expect(await next.read('dpl_1')).toEqual({
      environment: { KEY: 'hush-dpl_1' },
      network: 'public',
      secrets: ['hush-dpl_1'],
    })
    await expect(next.read('dpl_2')).rejects.toThrow('away')
    await next.close()
  }
})

test('a process that cannot open the file leaves it as it is', async () => {
  const first = start(there)
  await first.read('dpl_1')
  await first.close()
  const before = await readFile(join(directory, 'servers'))
  const foreign = createEnvironments(away, createSnapshots({ directory, vault: createVault(Buffer.alloc(32, 2)), log }))
  await expect(foreign.read('dpl_1')).rejects.toThrow('away')
  await foreign.close()
  expect((await readFile(join(directory, 'servers'))).equals(before)).toBe(true)
})

test('another process that has read something else loses nothing', async () => {
  const first = start(there)
  await first.read('dpl_1')
  await first.close()
  const second = start(there)
  await second.read('dpl_3')
  await second.close()
  const third = start(away)
  expect((await third.read('dpl_1')).secrets).toEqual(['hush-dpl_1'])
  expect((await third.read('dpl_3')).secrets).toEqual(['hush-dpl_3'])
  await third.close()
})
