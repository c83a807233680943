// Hostile updates: none passes without its key, none beyond its patterns, none breaks anything; and the same as BIND does.
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decodeQuery, emptyQuery } from '../../../../src/dns/packet/query.ts'
import { readTsig } from '../../../../src/dns/packet/tsig.ts'
import { wireName } from '../../../../src/dns/packet/wire-names.ts'
import { createUpdates } from '../../../../src/engines/nameserver/update/updates.ts'
import { freePort } from '../../../helpers/ports.ts'
import { seededRandom } from '../../../helpers/seed.ts'
import { until } from '../../../helpers/until.ts'
import { askUdp, sendUdp } from '../packets.ts'
import { isMissing, type Peer, run, startPeer } from '../transfer/world.ts'
import {
  absent,
  add,
  addAddress,
  addressData,
  addText,
  exists,
  type Key,
  nameData,
  type Part,
  rcodeOf,
  remove,
  sign,
  startUpdates,
  textData,
  type UpdateWorld,
  updateMessage,
} from './world.ts'

const { randomBytes, randomInt } = seededRandom()

const runs = 50

let world: UpdateWorld
beforeAll(async () => {
  world = await startUpdates()
})
afterAll(() => world?.stop())

const distinct = <T>(list: readonly T[]): T[] => [...new Map(list.map((one) => [JSON.stringify(one), one])).values()]
const pick = <T>(list: readonly T[]): T => list[randomInt(list.length)]!

function mutated(packet: Buffer): Buffer {
  let changed = Buffer.from(packet)
  for (let changes = 1 + randomInt(4); changes > 0; changes--) {
    const at = randomInt(changed.length || 1)
    const kind = randomInt(6)
    if (kind === 0) changed = changed.subarray(0, at)
    else if (kind === 1)
      changed = Buffer.concat([changed.subarray(0, at), randomBytes(1 + randomInt(3)), changed.subarray(at)])
    else if (kind === 2) changed = Buffer.concat([changed.subarray(0, at), changed.subarray(at + 1 + randomInt(4))])
    else if (changed.length > at) {
      changed = Buffer.from(changed)
      changed[at] = pick([0, 0xff, 0xc0, 0x3f, changed[at]! ^ (1 << randomInt(8)), randomInt(256)])
    }
  }
  return changed
}

test(`${runs * 2_000} mutated updates: only what was signed is ever written, and every answer can be read`, async () => {
  await world.newDomain('signed.com')
  const key = await world.newKey('signed.com')
  const zoneKey = await world.db.dnsKey.findUniqueOrThrow({ where: { id: key.id } })
  const { accountId, domainId } = zoneKey
  const known = { ...key, accountId, domainId, purpose: 'update' as const, notify: [] }
  const errors: unknown[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void errors.push(line) })
  const updates = createUpdates({
    keys: { find: (name) => (name === wireName(key.name) ? known : null) },
    table: { find: () => null },
    db: world.db,
    perMinute: { key: 1e9, account: 1e9 },
    log,
  })
  const answers: string[] = []
  const handle = async (message: Buffer) => {
    const query = emptyQuery()
    if (!decodeQuery(message, query) || query.opcode !== 5) return
    const take = async (answer: Buffer) => {
      if (answer.readUInt16BE(0) !== message.readUInt16BE(0)) throw new Error(`another id: ${message.toString('hex')}`)
      answers.push(rcodeOf(answer))
    }
    const peer = { address: '127.0.0.1', port: 9 }
    await updates.handle({ message, query, peer, tcp: false, send: take, refuse: take, answer: async () => null })
  }
  for (let index = 0; index < runs * 2_000; index++) {
    const good = updateMessage('signed.com', {
      prerequisites: [exists('signed.com'), absent('free.signed.com', 'TXT')],
      updates: [
        addText(`ok${index}.signed.com`, `ok${index}`),
        remove('none.signed.com', 'A', addressData('192.0.2.1')),
      ],
    })
    const evil = updateMessage('signed.com', {
      updates: [addText('evil.signed.com', 'evil'), remove('ok1.signed.com')],
    })
    const kind = randomInt(8)
    if (kind === 0) await handle(sign({ ...key, secret: randomBytes(32) }, evil))
    // The signature of one update under the octets of another.
    else if (kind === 1) {
      const signed = sign(key, good)
      const tail = signed.subarray((readTsig(signed) as { start: number }).start)
      const forged = Buffer.concat([evil, tail])
      forged.writeUInt16BE(1, 10)
      await handle(forged)
    } else if (kind === 2) await handle(mutated(evil))
    else await handle(mutated(sign(key, good)))
  }
  const rows = await world.db.dnsRecord.findMany({ where: { domainId } })
  // Letters of the key's name, and the id, are not signed: those few are what was signed indeed.
  for (const { name, type, value } of rows) {
    expect([type, value]).toEqual(['TXT', `"${name}"`])
    expect(name).toMatch(/^ok\d+$/)
  }
  expect(answers.length).toBeGreaterThan(runs * 500)
  expect(new Set(answers)).toContain('NOTAUTH')
  expect(errors).toEqual([])
}, 300_000)

/** Any step, at any of these names. */
function anyStep(names: readonly string[]): Part {
  const name = pick(names)
  const text = textData(pick(['a', 'b', 'c']))
  const address = addressData(`192.0.2.${1 + randomInt(3)}`)
  const ttl = pick([30, 300, 600])
  return pick<() => Part>([
    () => addText(name, pick(['a', 'b', 'c']), ttl),
    () => addAddress(name, `192.0.2.${1 + randomInt(3)}`, ttl),
    () => add(name, 'MX', Buffer.concat([Buffer.from([0, 10]), nameData('m.example.net')]), ttl),
    () => add(name, 'CNAME', nameData(pick(['x.example.net', 'y.example.net'])), ttl),
    () => remove(name),
    () => remove(name, pick(['TXT', 'A', 'CNAME', 'MX'])),
    () => remove(name, 'TXT', text),
    () => remove(name, 'A', address),
  ])()
}

function anyPrerequisite(names: readonly string[]): Part {
  const name = pick(names)
  const type = pick(['TXT', 'A', 'CNAME', 'ANY'])
  return pick<() => Part>([
    () => exists(name, type),
    () => absent(name, type),
    () => absent(name, type),
    () => exists(name, 'TXT', textData(pick(['a', 'b']))),
  ])()
}

test(`${runs * 60} random updates by a narrowed key leave everything beyond its patterns as it was`, async () => {
  await world.newDomain('narrow.com')
  const wide = await world.newKey('narrow.com')
  const key = await world.newKey('narrow.com', { names: ['own', 'own.*', '*.dyn'], types: ['TXT', 'A'] })
  const inside = ['own', 'a.own2', 'own.b', 'x.dyn', 'dyn', 'notown', 'www', '@', '*.dyn', 'own.own']
  const names = inside.map((name) => (name === '@' ? 'narrow.com' : `${name}.narrow.com`))
  for (const name of names.slice(0, 7))
    await world.update(wide, { updates: [addText(name, 'kept'), addAddress(name, '192.0.2.9')] })
  await world.update(wide, {
    updates: [add('own.narrow.com', 'MX', Buffer.concat([Buffer.from([0, 9]), nameData('m.example.net')]))],
  })
  const mayTouch = (name: string, type: string) =>
    (name === 'own' || name.startsWith('own.') || name.endsWith('.dyn')) && ['TXT', 'A'].includes(type)
  const outside = async () => {
    const rows = await world.db.dnsRecord.findMany({
      where: { domain: { name: 'narrow.com' } },
      orderBy: { id: 'asc' },
    })
    return JSON.stringify(rows.filter(({ name, type }) => !mayTouch(name, type)))
  }
  const before = await outside()
  const codes = new Set<string>()
  for (let index = 0; index < runs * 60; index++) {
    const updates = Array.from({ length: 1 + randomInt(3) }, () => anyStep(names))
    codes.add(await world.update(key, { updates }))
  }
  expect(await outside()).toBe(before)
  expect([...codes].sort()).toEqual(['NOERROR', 'REFUSED'])
}, 300_000)

describe.skipIf(isMissing('named', 'dig'))('beside BIND', () => {
  let bind: Peer
  let bindPort: number
  let key: Key
  const zone = 'same.com'
  beforeAll(async () => {
    await world.newDomain(zone)
    key = await world.newKey(zone)
    bindPort = await freePort()
    bind = await startPeer(
      'named',
      (directory) => ['-g', '-n', '1', '-c', join(directory, 'named.conf')],
      (directory) => ({
        'zone.db': `$TTL 60\n@ SOA ns.${zone}. h.${zone}. 1 60 60 60 60\n@ NS ns.example.net.\n`,
        'named.conf': `
          key "${key.name}" { algorithm hmac-sha256; secret "${key.secret.toString('base64')}"; };
          options {
            directory "${directory}"; pid-file none; session-keyfile none; recursion no; dnssec-validation no;
            listen-on port ${bindPort} { 127.0.0.1; }; listen-on-v6 { none; };
          };
          controls {};
          zone "${zone}" { type primary; file "zone.db"; allow-update { key "${key.name}"; }; allow-transfer { any; }; };`,
      }),
    )
    await until(async () => (await askUdp(bindPort, zone, 'SOA').catch(() => null))?.rcode === 'NOERROR').catch(
      (error) => {
        throw new Error(`${error} ${bind.output()}`)
      },
    )
  })
  afterAll(() => bind?.stop())

  const ourZone = async () => {
    const rows = await world.db.dnsRecord.findMany({ where: { domain: { name: zone } } })
    return rows.map(({ name, type, ttl, value }) => `${name}.${zone}. ${ttl} ${type} ${value}`).sort()
  }
  const bindZone = async () => {
    const text = await run('dig', ['@127.0.0.1', '-p', String(bindPort), '+noall', '+answer', 'AXFR', zone])
    return text
      .split('\n')
      .map((line) => line.split(/\s+/))
      .filter((fields) => fields.length > 4 && fields[3] !== 'SOA' && fields[0] !== `${zone}.`)
      .map(([name, ttl, , type, ...value]) => `${name} ${ttl} ${type} ${value.join(' ').replace(/\.$/, '')}`)
      .sort()
  }

  test(`${runs * 60} random updates have the same answers and the same zone`, async () => {
    const names = ['a', 'b', 'c.d', '*.w'].map((name) => `${name}.${zone}`)
    const seen = new Set<string>()
    for (let index = 0; index < runs * 60; index++) {
      // Without repetitions, which BIND counts as another set (RFC 2136 compares sets).
      const prerequisites = distinct(Array.from({ length: pick([0, 0, 1, 2]) }, () => anyPrerequisite(names)))
      const updates = Array.from({ length: randomInt(4) }, () => anyStep(names))
      const packet = sign(key, updateMessage(zone, { prerequisites, updates }))
      const [ours, theirs] = await Promise.all([sendUdp(world.ports[0]!, packet), sendUdp(bindPort, packet)])
      const wanted = rcodeOf(theirs!)
      seen.add(wanted)
      expect(rcodeOf(ours!), JSON.stringify({ prerequisites, updates })).toBe(wanted)
      if (index % 20 === 19) expect(await ourZone(), JSON.stringify(updates)).toEqual(await bindZone())
    }
    expect([...seen].sort()).toEqual(expect.arrayContaining(['NOERROR', 'NXRRSET', 'YXDOMAIN']))
  }, 300_000)
})
