// Several threads on one port: the system gives each question to one of them by the port it comes from.
import { spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { BroadcastChannel } from 'node:worker_threads'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRateLimit, rateLimitMemory } from '../../../src/engines/nameserver/answer/rate-limit.ts'
import { createNameserver } from '../../../src/engines/nameserver/server.ts'
import { loadPacketSockets } from '../../../src/engines/nameserver/workers/packets.ts'
import { seededRandom } from '../../helpers/seed.ts'
import { until } from '../../helpers/until.ts'
import { addressesIn, askTcp, askUdp, type QuestionOptions, question, readMessage, sendUdp } from './packets.ts'
import { startWorld, type World } from './world.ts'

const { randomBytes, randomInt } = seededRandom()

// They need Linux and koffi, which is an optional dependency.
const possible = process.env.BERTH_REQUIRE_PEERS === '1' || (await loadPacketSockets()) !== null

let world: World

// So many that no thread is left out, but for once in millions of runs.
const asked = 40
const all = <T>(work: (port: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: asked }, (_, index) => work(world.ports[index % 2]!)))
const askAll = (name: string, type: string, options: QuestionOptions = {}) =>
  all((port) => askUdp(port, name, type, options))
/** Every thread's word, in a row if they differ. */
const addresses = async (name: string) =>
  [...new Set((await askAll(name, 'A')).map(({ answer }) => addressesIn(answer).join()))].sort().join(' or ')

async function metric(name: string): Promise<number> {
  const { values } = await world.nameserver.metrics.registry.getSingleMetric(name)!.get()
  return values.reduce((sum, { value }) => sum + value, 0)
}

describe.skipIf(!possible)('the threads of a nameserver', () => {
  beforeAll(async () => {
    world = await startWorld({ workers: 2 })
    await world.newDomain('threads.com')
    await world.record('threads.com', 'A', 'first', '192.0.2.1')
    await until(async () => (await addresses('first.threads.com')) === '192.0.2.1')
  })
  afterAll(() => world.stop())

  test('answer alike, in one’s own spelling, and each is counted once', async () => {
    const before = await metric('berth_nameserver_queries_total')
    for (let round = 0; round < 3; round++) {
      const answers = await askAll('FIRST.threads.com', 'A', { edns: 1232, options: [[3, Buffer.alloc(0)]] })
      expect(new Set(answers.map(({ question }) => question!.name))).toEqual(new Set(['FIRST.threads.com']))
      expect(new Set(answers.map(({ answer }) => addressesIn(answer).join()))).toEqual(new Set(['192.0.2.1']))
      const hosts = answers.map(({ opt }) => opt!.options.get(3)!.toString())
      expect(hosts.map((host, index) => host === `ns${1 + (index % 2)}.berth.example`)).not.toContain(false)
    }
    expect((await askTcp(world.ports[0]!, 'first.threads.com', 'A')).rcode).toBe('NOERROR')
    expect((await metric('berth_nameserver_queries_total')) - before).toBe(3 * asked + 1)
  })

  test('all know of a change as soon as one does', async () => {
    for (let round = 0; round < 10; round++) {
      const name = `n${round}.threads.com`
      expect(await addresses(name)).toBe('')
      expect(await addresses(name)).toBe('')
      const made = await world.record('threads.com', 'A', name, '192.0.2.7')
      await until(async () => addressesIn((await askUdp(world.ports[0]!, name, 'A')).answer).length === 1)
      expect(await addresses(name)).toBe('192.0.2.7')
      expect(await addresses(name)).toBe('192.0.2.7')
      await world.call('DELETE', `/dns/threads.com/records/${made.body.id}`)
      await until(async () => (await askUdp(world.ports[1]!, name, 'A')).answer.length === 0)
      expect(await addresses(name)).toBe('')
    }
  })

  test('all know when a name passes to another zone', async () => {
    await world.record('threads.com', 'A', 'sub', '192.0.2.8')
    await until(async () => (await addresses('sub.threads.com')) === '192.0.2.8')
    await world.newDomain('sub.threads.com')
    await until(
      async () => addressesIn((await askUdp(world.ports[0]!, 'sub.threads.com', 'A')).answer)[0] === '192.0.2.80',
    )
    expect(await addresses('sub.threads.com')).toBe('192.0.2.80')
  })

  test('know each other’s cookies', async () => {
    const client = Buffer.from('01020304')
    const first = await askUdp(world.ports[0]!, 'threads.com', 'SOA', { edns: 1232, options: [[10, client]] })
    const cookie = first.opt!.options.get(10)!
    const answers = await askAll('threads.com', 'SOA', { edns: 1232, options: [[10, cookie]] })
    // One that is not known gets another one back.
    expect(answers.map(({ opt }) => opt!.options.get(10)!.equals(cookie))).not.toContain(false)
  })

  test('answer what is broken, or not to be had over UDP, as one would', async () => {
    expect(new Set((await askAll('threads.com', 'AXFR')).map(({ rcode }) => rcode))).toEqual(new Set(['REFUSED']))
    expect(new Set((await askAll('elsewhere.net', 'A')).map(({ rcode }) => rcode))).toEqual(new Set(['REFUSED']))
    const odd = await askAll('threads.com', 'A', { counts: [2, 0, 0, 0] })
    expect(new Set(odd.map(({ rcode }) => rcode))).toEqual(new Set(['FORMERR']))
  })

  test('go on answering what was asked before while the one with the zones is busy', async () => {
    const packet = question('first.threads.com', 'A').toString('hex')
    const script = `
      const { createSocket } = require('node:dgram')
      let answered = 0
      for (let index = 0; index < ${asked}; index++) {
        const socket = createSocket('udp4').on('message', (answer, from) => {
          if (from.port === ${world.ports[0]} && ++answered === ${asked}) process.exit(3)
        })
        socket.send(Buffer.from('${packet}', 'hex'), ${world.ports[0]}, '127.0.0.1')
      }
      setTimeout(() => process.exit(4), 3_000)`
    // Waited for without a turn of the event loop: nothing that is handed to this thread is answered meanwhile. What
    // was asked twice is told to the others in the turns between.
    await until(async () => spawnSync(process.execPath, ['-e', script]).status === 3)
  })

  test('answer names that nobody asked for before, while the one with the zones is busy', async () => {
    await world.record('threads.com', 'A', '*.wild', '192.0.2.6')
    await until(async () => (await addresses('first.wild.threads.com')) === '192.0.2.6')
    const random = (suffix: string) => `r${randomInt(1e9)}.${suffix}`
    const suffixes = ['threads.com', 'wild.threads.com', 'first.threads.com', 'nowhere.net']
    const packets = () => suffixes.flatMap((suffix) => Array.from({ length: 10 }, () => question(random(suffix), 'A')))
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
      // Those of a kind that was asked twice are told to all threads in the turns between.
      await Promise.all(packets().map((packet) => sendUdp(world.ports[0]!, packet)))
      const { status, stdout } = spawnSync(process.execPath, ['-e', ask(packets())], { encoding: 'utf8' })
      if (status !== 3) return false
      expect(JSON.parse(stdout)).toEqual({ '3,0': 20, '0,1': 10, '5,0': 10 })
      return true
    })
    const made = await world.record('threads.com', 'A', 'new.first', '192.0.2.5')
    await until(
      async () => addressesIn((await askUdp(world.ports[0]!, 'new.first.threads.com', 'A')).answer).length === 1,
    )
    expect(await addresses('new.first.threads.com')).toBe('192.0.2.5')
    expect(made.status).toBe(201)
  })

  test('drop what is longer than any question, and live on', async () => {
    const before = await metric('berth_nameserver_dropped_total')
    await Promise.all(Array.from({ length: 20 }, () => sendUdp(world.ports[0]!, Buffer.alloc(5_000, 1), 50)))
    await until(async () => (await metric('berth_nameserver_dropped_total')) - before >= 20)
    expect((await metric('berth_nameserver_dropped_total')) - before).toBe(20)
    expect(await addresses('first.threads.com')).toBe('192.0.2.1')
  })

  test('are not harmed by octets of any kind and number', async () => {
    const socket = createSocket('udp4')
    const valid = question('first.threads.com', 'A', { edns: 1232, options: [[10, randomBytes(24)]] })
    for (let index = 0; index < 3_000; index++) {
      const packet = index % 2 === 0 ? randomBytes(index % 300) : Buffer.from(valid)
      if (index % 2 === 1) packet[randomInt(packet.length)] = randomInt(256)
      await new Promise<void>((resolve) => socket.send(packet, world.ports[0]!, '127.0.0.1', () => resolve()))
    }
    expect(await addresses('first.threads.com')).toBe('192.0.2.1')
    const { values } = await world.nameserver.metrics.registry.getSingleMetric('berth_nameserver_dropped_total')!.get()
    expect(values.find(({ labels }) => labels.reason === 'fault')!.value).toBe(0)
    socket.close()
  })

  test('answer over IPv6', async () => {
    const config = { ...world.config, nameserverListen: ['[::1]:0'] }
    const nameserver = createNameserver({ ...world.deps, config, workers: 1 })
    const [listener] = await nameserver.listen()
    const socket = createSocket('udp6')
    try {
      const answers: Buffer[] = []
      socket.on('message', (answer) => answers.push(answer))
      for (let round = 1; round <= 3; round++) {
        socket.send(question('first.threads.com', 'A'), listener!.port, '::1')
        await until(async () => answers.length === round)
      }
      expect(answers.map((answer) => addressesIn(readMessage(answer).answer).join())).toEqual(
        Array(3).fill('192.0.2.1'),
      )
    } finally {
      socket.close()
      await nameserver.close()
    }
  })

  test('count as answering once each of them has answered at every address, and again after one is replaced', async () => {
    const threads = new BroadcastChannel('berth-held-threads')
    const program = new URL('held-thread.ts', import.meta.url)
    const config = { ...world.config, nameserverListen: ['127.0.0.1:0', '127.0.0.1:0'] }
    const nameserver = createNameserver({ ...world.deps, config, workers: 2, workerProgram: program })
    expect(await nameserver.answers()).toBe(false)
    const { port } = (await nameserver.listen())[0]!
    try {
      // TCP is answered by the main thread, before any other thread has begun.
      expect((await askTcp(port, 'first.threads.com', 'A')).rcode).toBe('NOERROR')
      for (let round = 0; round < 2; round++) {
        for (let asked = 0; asked < 3; asked++) expect(await nameserver.answers()).toBe(false)
        await until(async () => {
          threads.postMessage('start')
          return nameserver.answers()
        })
        const answers = await Promise.all(Array.from({ length: asked }, () => askUdp(port, 'first.threads.com', 'A')))
        expect(answers.map(({ answer }) => addressesIn(answer).join())).toEqual(Array(asked).fill('192.0.2.1'))
        threads.postMessage('fail')
        await until(async () => !(await nameserver.answers()))
      }
    } finally {
      threads.close()
      await nameserver.close()
    }
  })

  test('tell of a port that another server has', async () => {
    const taken = createSocket('udp4')
    await new Promise<void>((resolve) => taken.bind(0, '127.0.0.1', resolve))
    const config = { ...world.config, nameserverListen: [`127.0.0.1:${taken.address().port}`] }
    const nameserver = createNameserver({ ...world.deps, config, workers: 1 })
    await expect(nameserver.listen()).rejects.toMatchObject({ code: 'EADDRINUSE' })
    taken.close()
  })
})

test('limits that have one memory count together', () => {
  const memory = rateLimitMemory()
  const limits = [1, 2].map(() => createRateLimit({ perSecond: 5, slip: 0, memory, now: () => 1_000 }))
  const verdicts = Array.from({ length: 12 }, (_, index) => limits[index % 2]!.judge('192.0.2.1', 7))
  expect(verdicts.filter((verdict) => verdict === 'send')).toHaveLength(5)
})
