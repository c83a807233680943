import { createSocket } from 'node:dgram'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Channel } from '../../../src/engines/nameserver/serve/responder.ts'
import { memoryInUse } from '../../helpers/heap.ts'
import { isSystemTier, seededRandom } from '../../helpers/seed.ts'
import { until } from '../../helpers/until.ts'
import { askUdp, framed, type QuestionOptions, question, readMessage, sendTcp, types } from './packets.ts'
import { everyRecord } from './world.ts'
import { type Served, serveZones } from './zones.ts'

const { randomInt } = seededRandom()

const packets = isSystemTier ? 200_000 : 5_000

let served: Served
beforeAll(async () => {
  served = await serveZones()
  served.put('full.com', everyRecord.map(([type, name, value]) => `${name} ${type} ${value}`).join('\n'))
  const many = Array.from({ length: 400 }, (_, index) => `many A 192.0.${index >> 8}.${index & 255}`)
  served.put('big.com', many.join('\n'))
})
afterAll(() => served.stop())

const pick = <T>(list: readonly T[]): T => list[randomInt(list.length)]!
const names = [
  'full.com',
  'www.full.com',
  'X.wild.full.com',
  'x.cut.full.com',
  'many.big.com',
  'nope.org',
  '.',
  'chain.FULL.com',
]

function mutated(): { packet: Buffer; allowance: number } {
  const options: QuestionOptions = {}
  if (randomInt(2) === 0) {
    options.edns = pick([0, 100, 512, 1232, 4096, 65_535])
    options.version = randomInt(20) === 0 ? 1 : 0
    options.options = Array.from({ length: randomInt(3) }, () => [
      pick([3, 10, 8, 12, 65001]),
      Buffer.alloc(randomInt(45), 7),
    ])
  }
  if (randomInt(10) === 0) options.class = randomInt(0x10000)
  const whole = question(pick(names), randomInt(5) === 0 ? randomInt(0x10000) : pick(Object.values(types)), options)
  let packet = whole
  for (let changes = randomInt(5); changes > 0; changes--) {
    const at = randomInt(packet.length || 1)
    const kind = randomInt(6)
    if (kind === 0) packet = packet.subarray(0, at)
    else if (kind === 1)
      packet = Buffer.concat([packet.subarray(0, at), Buffer.from([randomInt(256)]), packet.subarray(at)])
    else if (kind === 2) packet = Buffer.concat([packet, packet.subarray(0, at)])
    else if (packet.length > at) {
      packet = Buffer.from(packet)
      packet[at] = pick([0, 0xff, 0xc0, 0x3f, 0x40, packet[at]! ^ (1 << randomInt(8)), randomInt(256)])
    }
  }
  // What a mutated packet allows is not clear, so the most that any may get; an untouched one tells exactly.
  const edns = packet === whole && options.edns !== undefined ? Math.min(1232, Math.max(512, options.edns)) : 512
  return { packet, allowance: packet === whole ? edns : 1232 }
}

test(`${packets} mutated packets: no exception, no answer larger than allowed, memory flat`, {
  timeout: 300_000,
}, async () => {
  const channel: Channel = { tcp: false, send: () => {} }
  let answered = 0
  const run = async (count: number) => {
    for (let index = 0; index < count; index++) {
      const { packet, allowance } = mutated()
      const answer = await served.responder.respond(packet, { address: '127.0.0.1', port: 9 }, channel)
      if (!answer) continue
      answered++
      if (answer.length > allowance) throw new Error(`${answer.length} > ${allowance}: ${packet.toString('hex')}`)
      // Whatever goes out can be read, with the id that came in.
      if (readMessage(answer).id !== packet.readUInt16BE(0)) throw new Error(`wrong id: ${packet.toString('hex')}`)
    }
  }
  await run(packets / 2)
  const memory = () => {
    const { heapUsed, external } = memoryInUse()
    return heapUsed + external
  }
  const middle = memory()
  await run(packets / 2)
  expect(answered).toBeGreaterThan(packets / 2)
  expect(await served.metric('berth_nameserver_dropped_total', { reason: 'fault' })).toBe(0)
  expect(memory() - middle).toBeLessThan(8 << 20)
})

test('the same over sockets: the listener lives on', async () => {
  const socket = createSocket('udp4')
  let answers = 0
  socket.on('message', () => {
    answers++
  })
  for (let index = 0; index < 3_000; index++) {
    const { packet } = mutated()
    await new Promise<void>((resolve) => socket.send(packet, served.port, '127.0.0.1', () => resolve()))
  }
  for (let index = 0; index < 50; index++) {
    const octets = Buffer.concat([framed(mutated().packet), mutated().packet])
    await sendTcp(served.port, octets, 1, 20)
  }
  expect((await askUdp(served.port, 'host.full.com', 'A')).answer).toHaveLength(2)
  await until(() => answers > 1_000)
  socket.close()
})
