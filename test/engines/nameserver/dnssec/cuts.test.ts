// A signed zone and the zones below it that are served here too: proofs of the one never deny what the others answer.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isMissing, run, startWorld, type World } from '../transfer/world.ts'
import { faultsOf, signZone, transferred } from './world.ts'

describe.skipIf(isMissing('dig', 'delv', 'dnssec-verify', 'ldns-verify-zone'))('zones below a signed one', () => {
  let world: World
  beforeAll(async () => {
    world = await startWorld()
    await world.addDomain('full.com')
    await world.addRecord('full.com', 'A', '@', '192.0.2.1')
    await world.addDomain('early.full.com')
    await world.addRecord('early.full.com', 'A', '@', '192.0.2.2')
    await signZone(world, 'full.com', 'nsec')
    await world.addDomain('late.full.com')
    await world.addRecord('late.full.com', 'A', '@', '192.0.2.3')
  })
  afterAll(() => world.stop())

  test('are delegated without a DS, so that resolvers take their answers as not signed', async () => {
    await expect
      .poll(() => transferred(world, 'full.com'), { timeout: 20_000 })
      .toMatch(/^late\.full\.com\.\s+3600\s+IN\s+NS/m)
    const text = await transferred(world, 'full.com')
    expect(text).toMatch(/^early\.full\.com\.\s+3600\s+IN\s+NS/m)
    expect(await faultsOf('full.com', text)).toBe('')
    const key = /^full\.com\.\s+\d+\s+IN\s+DNSKEY\s+(\d+ \d+ \d+) (\S+)/m.exec(text)!
    const directory = await mkdtemp(join(tmpdir(), 'berth-delv-'))
    const anchors = join(directory, 'anchors')
    await writeFile(anchors, `trust-anchors { "full.com" static-key ${key[1]} "${key[2]}"; };\n`)
    const ask = (name: string, type: string) =>
      run('delv', ['@127.0.0.1', '-p', String(world.port), '-a', anchors, '+root=full.com', name, type])
    for (const name of ['early.full.com', 'late.full.com']) {
      expect(await ask(name, 'DS')).toContain('negative response, fully validated')
      expect(await ask(name, 'A')).toMatch(/^; unsigned answer$/m)
    }
    await rm(directory, { recursive: true })
  })
})
