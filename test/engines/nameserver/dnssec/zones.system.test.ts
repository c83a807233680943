// Signed zones as secondaries have them: BIND and ldns say that they are complete, after every change.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isMissing, run, startWorld, type World } from '../transfer/world.ts'
import { everyRecord } from '../world.ts'
import { faultsOf, signZone, transferred } from './world.ts'

/** The same at every run. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
}

describe.skipIf(isMissing('dig', 'delv', 'dnssec-verify', 'ldns-verify-zone')).each(['nsec', 'nsec3'] as const)(
  '%s',
  (denial) => {
    let world: World
    beforeAll(async () => {
      world = await startWorld()
      await world.addDomain('full.com')
      for (const [type, name, value] of everyRecord) await world.addRecord('full.com', type, name, value)
      world.elsewhere.set('elsewhere.example', '192.0.2.99')
      await world.addRecord('full.com', 'ALIAS', 'flat', 'elsewhere.example')
      await world.addRecord('full.com', 'ALIAS', 'inside', 'host.full.com')
      await world.addRecord('full.com', 'ALIAS', 'nowhere', 'nothing.full.com')
      await world.lookUp('full.com')
      await signZone(world, 'full.com', denial)
    })
    afterAll(() => world.stop())

    test('a zone with every shape is signed completely', async () => {
      const text = await transferred(world, 'full.com')
      expect(text).toContain('DNSKEY')
      expect(await faultsOf('full.com', text)).toBe('')
    })

    test('every answer is proved: delv takes each as fully validated', async () => {
      const text = await transferred(world, 'full.com')
      const key = /^full\.com\.\s+\d+\s+IN\s+DNSKEY\s+(\d+ \d+ \d+) (\S+)/m.exec(text)!
      const directory = await mkdtemp(join(tmpdir(), 'berth-delv-'))
      const anchors = join(directory, 'anchors')
      await writeFile(anchors, `trust-anchors { "full.com" static-key ${key[1]} "${key[2]}"; };\n`)
      const ask = (name: string, type: string) =>
        run('delv', ['@127.0.0.1', '-p', String(world.port), '-a', anchors, '+root=full.com', name, type])
      const questions: [name: string, type: string, said: RegExp][] = [
        ['full.com', 'SOA', /^; fully validated$/m],
        ['full.com', 'DNSKEY', /^; fully validated$/m],
        ['full.com', 'CDS', /^; fully validated$/m],
        ['full.com', 'CDNSKEY', /^; fully validated$/m],
        ['host.full.com', 'A', /^; fully validated$/m],
        ['chain.full.com', 'A', /^; fully validated$/m],
        ['flat.full.com', 'A', /^; fully validated\nflat\.full\.com\.\s+60\s+IN\s+A\s+192\.0\.2\.99$/m],
        ['inside.full.com', 'A', /^; fully validated$/m],
        ['flat.full.com', 'TXT', /^; negative response, fully validated$/m],
        ['anything.wild.full.com', 'A', /^; fully validated$/m],
        ['anything.wild.full.com', 'MX', /^; negative response, fully validated$/m],
        ['x.wildc.full.com', 'A', /^; fully validated$/m],
        ['into-wild.full.com', 'A', /^; fully validated$/m],
        ['x.moved.full.com', 'A', /^; fully validated$/m],
        ['host.full.com', 'MX', /^; negative response, fully validated$/m],
        ['b.c.full.com', 'A', /^; negative response, fully validated$/m],
        ['missing.full.com', 'A', /^; negative response, fully validated$/m],
        ['a.missing.b.c.full.com', 'A', /^; negative response, fully validated$/m],
        ['zzz.full.com', 'A', /^; negative response, fully validated$/m],
        ['dangling.full.com', 'A', /fully validated$/m],
        ['cut.full.com', 'DS', /^; fully validated$/m],
        ['bare.cuts.full.com', 'DS', /^; negative response, fully validated$/m],
      ]
      try {
        for (const [name, type, said] of questions) expect(await ask(name, type), `${name} ${type}`).toMatch(said)
      } finally {
        await rm(directory, { recursive: true, force: true })
      }
    })

    test('stays complete through fifty changes of any kind', async () => {
      const { call } = world.api
      const made: string[] = []
      const random = randomNumbers(denial === 'nsec' ? 1 : 2)
      const kinds: [type: string, value: () => string][] = [
        ['A', () => `192.0.2.${random(250) + 1}`],
        ['TXT', () => `"${random(1000)}"`],
        ['NS', () => `ns${random(9)}.example.net`],
        ['CNAME', () => `n${random(9)}.full.com`],
        ['ALIAS', () => 'host.full.com'],
      ]
      for (let change = 0; change < 50; change++) {
        const labels = ['n', '*.n', 'a.n', 'b.a.n', '*.b.a.n', '@', 'www']
        const name = labels[random(labels.length)]!.replace('n', `n${random(3)}`)
        const [type, value] = kinds[random(kinds.length)]!
        if (random(3) > 0 || made.length === 0) {
          const body = { type, name, value: value(), ttl: 300 }
          const answer = await call('POST', '/dns/full.com/records', { body })
          if (answer.status === 201) made.push(answer.body.id)
        } else await call('DELETE', `/dns/full.com/records/${made.splice(random(made.length), 1)[0]}`)
        await world.settled('full.com')
        if (change % 5 === 4) expect(await faultsOf('full.com', await transferred(world, 'full.com'))).toBe('')
      }
    })
  },
)
