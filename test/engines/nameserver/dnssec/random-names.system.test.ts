// Names that do not exist in a signed zone share an answer with those in the same gap of its chain: it is the answer that the
// zone has for each of them alone, over UDP and TCP, of every thread, and after every change.
import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createEncoder } from '../../../../src/engines/nameserver/answer/encode.ts'
import { isSigned, lookupSigned } from '../../../../src/engines/nameserver/dnssec/sets.ts'
import { loadPacketSockets } from '../../../../src/engines/nameserver/workers/packets.ts'
import type { Zone } from '../../../../src/engines/nameserver/zones/zone.ts'
import type { ZoneSource, ZoneTable } from '../../../../src/engines/nameserver/zones/zone-table.ts'
import { createZoneKey } from '../../../../src/services/dns/dnssec/zone-keys.ts'
import { until } from '../../../helpers/until.ts'
import {
  framed,
  type Message,
  nameOctets,
  question,
  type Rr,
  readMessage,
  sendTcp,
  sendUdp,
  types,
} from '../packets.ts'
import { startWorld, type World } from '../world.ts'
import { nowhere, type Served, serveZones } from '../zones.ts'
import { type Denial, unreallySigned } from './unreal.ts'

const records = `
  @ MX 10 mail.example.com
  mail A 192.0.2.1
  deep.empty.name TXT "x"
  *.wild A 192.0.2.2
  *.wild MX 10 mx.a.wild.example.com
  known.wild A 192.0.2.3
  m.known.wild A 192.0.2.3
  *.chain CNAME mail.example.com
  *.inside CNAME a.inside.example.com
  *.loop CNAME b.loop2.example.com
  *.loop2 CNAME b.loop.example.com
  *.gone CNAME not.there.example.com
  *.edge ALIAS shop.berth.example
  moved DNAME wild.example.com
  sub NS ns.sub.example.com
  ns.sub A 192.0.2.4
  safe NS ns.example.net`

const denials: Denial[] = ['nsec', 'nsec3']
const asking = { edns: 4096, dnssecOk: true }

/** The same at every run. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
}

const known = [
  'mail',
  'deep',
  'empty',
  'name',
  'wild',
  'known',
  'chain',
  'inside',
  'loop',
  'gone',
  'edge',
  'moved',
  'sub',
]
const odd = ['\x00', '\x01', '\x00\x01', 'mail\x00', 'mail\x01', '*', '\xff', 'zzz', 'MAIL', 'a', '-', 'b']

function randomName(random: (below: number) => number): string {
  const labels = Array.from({ length: 1 + random(3) }, () => {
    const kind = random(4)
    if (kind === 0) return known[random(known.length)]!
    if (kind === 1) return odd[random(odd.length)]!
    return `${String.fromCharCode(97 + random(26))}${random(1_000)}`
  })
  const suffix = ['', '', 'wild.', 'known.wild.', 'empty.name.', 'sub.', 'chain.'][random(7)]!
  return `${labels.join('.')}.${suffix}example.com`
}

const someTypes = ['A', 'A', 'A', 'MX', 'TXT', 'DS', 'ANY', 'CNAME']
const someQuestions = (seed: number, count: number): [name: string, type: string][] => {
  const random = randomNumbers(seed)
  return Array.from({ length: count }, () => [randomName(random), someTypes[random(someTypes.length)]!])
}

const shown = ({ name, type, ttl, data }: Rr) => `${name.toLowerCase()} ${type} ${ttl} ${data.toString('hex')}`
const sectionsOf = ({ rcode, aa, tc, answer, authority, additional }: Message) => ({
  rcode,
  aa,
  tc,
  sections: [answer, authority, additional].map((all) => all.map(shown)),
})

const drafts = new WeakMap<ZoneSource, Zone>()

/** The answer of the zone to this question alone. */
function expected(table: ZoneTable, name: string, type: string, limit: number) {
  const source = table.get('example.com')!
  const zone = drafts.get(source) ?? table.draft(source)
  drafts.set(source, zone)
  if (!isSigned(zone)) throw new Error('it is not signed')
  const octets = nameOctets(name.toLowerCase())
  const asked = { name: octets.toString('latin1'), type: types[type]!, dnssecOk: true }
  const found = lookupSigned(zone, asked, nowhere)
  const packet = question(name.toLowerCase(), type)
  const encoded = createEncoder().encode(packet.subarray(12), asked.name, found, limit)
  const answer = Buffer.from(encoded.octets.subarray(0, encoded.end))
  answer[2]! |= 0x80
  return sectionsOf(readMessage(answer))
}
const udpLimit = 1232 - 11

describe.each(denials)('%s', (denial) => {
  let served: Served
  let serial = 1
  beforeAll(async () => {
    served = await serveZones({ rateLimit: null })
    put(records)
  })
  afterAll(() => served.stop())

  const put = (text: string) => {
    const row = unreallySigned(served.table, 'example.com', text, serial++, denial)
    served.table.apply([row.name], [row])
  }
  const peer = { address: '127.0.0.1', port: 5353 }
  const answerTo = (name: string, type = 'A', tcp = false): Message => {
    const answer = served.responder.respond(question(name, type, asking), peer, { tcp, send: () => {} })
    if (!(answer instanceof Uint8Array)) throw new Error('no answer at once')
    return readMessage(answer)
  }

  test('every name has the answer of its zone, whatever was asked before, and across changes', () => {
    const questions = someQuestions(denial === 'nsec' ? 1 : 2, 500)
    for (const text of [records, `${records}\nm500 A 192.0.2.9\na.b.c.new TXT "y"`, records]) {
      put(text)
      for (const [name, type] of questions) {
        expect(sectionsOf(answerTo(name, type)), `${name} ${type}`).toEqual(
          expected(served.table, name, type, udpLimit),
        )
      }
      for (const [name, type] of questions.slice(0, 50)) {
        const whole = expected(served.table, name, type, 65_535)
        expect(sectionsOf(answerTo(name, type, true)), `${name} ${type}`).toEqual(whole)
      }
    }
  })

  test('many names are few answers of the cache', () => {
    put(records)
    let sets = 0
    const { set } = served.cache
    served.cache.set = (hash, answer) => {
      sets++
      set(hash, answer)
    }
    try {
      for (let n = 0; n < 1_500; n++) expect(answerTo(`r${n * 7919}.x${n}.example.com`).rcode).toBe('NXDOMAIN')
      for (let n = 0; n < 1_500; n++) expect(answerTo(`${n}.wild.example.com`).answer).toHaveLength(2)
      // As many as there are gaps at most.
      expect(sets).toBeLessThan(60)
    } finally {
      served.cache.set = set
    }
  })

  test('with and without signatures, and cut off where it is too long', () => {
    put(records)
    for (let round = 0; round < 3; round++) {
      const name = `r${round}.example.com`
      const plain = served.responder.respond(question(name, 'A'), peer, { tcp: false, send: () => {} })
      expect(readMessage(plain as Buffer).authority).toHaveLength(1)
      expect(answerTo(name).authority.length).toBeGreaterThan(3)
      const short = question(name, 'A', { edns: 512, dnssecOk: true })
      const cut = readMessage(served.responder.respond(short, peer, { tcp: false, send: () => {} }) as Buffer)
      expect(cut.rcode).toBe('NXDOMAIN')
    }
  })
})

const possible = process.env.BERTH_REQUIRE_PEERS === '1' || (await loadPacketSockets()) !== null

describe.skipIf(!possible).each(denials)('the threads of a nameserver, %s', (denial) => {
  let world: World
  beforeAll(async () => {
    world = await startWorld({ workers: 2, rateLimit: null })
    await world.newDomain('example.com')
    const body = records.replaceAll(/^ +/gm, '')
    const headers = { 'content-type': 'text/dns', 'if-match': '*' }
    const made = await world.call('PUT', '/dns/example.com/zone', { body, headers })
    if (made.status !== 200) throw new Error(made.text)
    const { id } = await world.db.domain.findFirstOrThrow({ where: { name: 'example.com' } })
    await world.db.domain.update({ where: { id }, data: { dnssecDenial: denial } })
    const use = { published: true, signing: true, announced: true }
    await world.db.zoneKey.create({ data: createZoneKey(world.deps.vault, id, use) })
    await settled()
  })
  afterAll(() => world.stop())

  const table = () => world.nameserver.snapshot!.table
  async function settled(): Promise<void> {
    const { serial } = await world.db.domain.findFirstOrThrow({ where: { name: 'example.com' } })
    await until(() => table().get('example.com')?.serial === serial)
  }
  async function askAll(questions: readonly [string, string][]): Promise<void> {
    await Promise.all(
      questions.map(async ([name, type], index) => {
        const packet = question(name, type, asking)
        const answer = await sendUdp(world.ports[index % 2]!, packet)
        const wanted = expected(table(), name, type, udpLimit)
        expect(sectionsOf(readMessage(answer!)), `${name} ${type}`).toEqual(wanted)
      }),
    )
  }

  test('have the answer of the zone for each name, before and after a change', async () => {
    const questions = someQuestions(3, 250)
    for (let round = 0; round < 3; round++) await askAll(questions)
    for (const [name, type] of questions.slice(0, 20)) {
      const [answer] = await sendTcp(world.ports[0]!, framed(question(name, type, asking)))
      expect(sectionsOf(readMessage(answer!))).toEqual(expected(table(), name, type, 65_535))
    }
    await world.record('example.com', 'A', 'm500', '192.0.2.9')
    await settled()
    for (let round = 0; round < 2; round++) await askAll(questions)
  })

  test('answer names that nobody asked for before, while the one with the zones is busy', async () => {
    const packets = () =>
      ['example.com', 'wild.example.com', 'known.wild.example.com'].flatMap((suffix) =>
        Array.from({ length: 10 }, () => question(`q${randomInt(1e9)}.${suffix}`, 'A', asking)),
      )
    const ask = (packets: Buffer[]) => `
      const { createSocket } = require('node:dgram')
      const codes = {}
      let answered = 0
      for (const packet of ${JSON.stringify(packets.map((packet) => packet.toString('hex')))}) {
        const socket = createSocket('udp4').on('message', (answer, from) => {
          if (from.port !== ${world.ports[0]}) return
          const kind = [answer[3] & 15, answer[7]].join()
          codes[kind] = (codes[kind] ?? 0) + 1
          if (++answered < ${packets.length}) return
          console.log(JSON.stringify(codes))
          process.exit(3)
        })
        socket.send(Buffer.from(packet, 'hex'), ${world.ports[0]}, '127.0.0.1')
      }
      setTimeout(() => process.exit(4), 3_000)`
    await until(async () => {
      // With NSEC3, each name may be in another gap: all of them have to be asked for twice.
      for (let round = 0; round < (denial === 'nsec' ? 3 : 20); round++) {
        await Promise.all(packets().map((packet) => sendUdp(world.ports[0]!, packet)))
      }
      const { status, stdout } = spawnSync(process.execPath, ['-e', ask(packets())], { encoding: 'utf8' })
      if (status !== 3) return false
      expect(JSON.parse(stdout)).toEqual({ '3,0': 20, '0,2': 10 })
      return true
    })
  })
})
